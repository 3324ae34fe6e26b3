#include "base/time.h"

#include <fmt/core.h>

namespace base {
namespace {

std::string FormatSeconds(Time time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss<std::chrono::seconds> clock(
      std::chrono::floor<std::chrono::seconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", int(date.year()),
                     unsigned(date.month()), unsigned(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

// Reads exactly `digits` decimal digits at `at`.
std::optional<int> Number(std::string_view text, size_t at, size_t digits) {
  if (at + digits > text.size()) return std::nullopt;
  int value = 0;
  for (size_t i = at; i < at + digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

}  // namespace

std::string FormatTime(Time time) { return FormatSeconds(time) + "Z"; }

std::string FormatTimeMicro(Time time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  return FormatSeconds(time) + fmt::format(".{:06}Z", (time - second).count());
}

std::optional<Time> ParseTime(std::string_view text) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':' || text.back() != 'Z') {
    return std::nullopt;
  }
  const auto year = Number(text, 0, 4), month = Number(text, 5, 2), day = Number(text, 8, 2);
  const auto hour = Number(text, 11, 2), minute = Number(text, 14, 2), second = Number(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(unsigned(*month)),
                                         std::chrono::day(unsigned(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  Duration fraction{0};
  if (text.size() > 20) {
    const size_t digits = text.size() - 21;
    if (text[19] != '.' || digits == 0 || digits > 6) return std::nullopt;
    const auto value = Number(text, 20, digits);
    if (!value) return std::nullopt;
    int64_t micros = *value;
    for (size_t i = digits; i < 6; ++i) micros *= 10;
    fraction = Duration(micros);
  }
  return Time(std::chrono::sys_days(date)) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute) + std::chrono::seconds(*second) + fraction;
}

}  // namespace base
