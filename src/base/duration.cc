#include "base/duration.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>

namespace base {
namespace {

struct Unit {
  std::string_view name;
  int64_t micros;
};

// Large to small; a name comes before one that it begins with.
constexpr std::array<Unit, 6> kUnits = {{{"d", 86'400'000'000},
                                         {"h", 3'600'000'000},
                                         {"m", 60'000'000},
                                         {"s", 1'000'000},
                                         {"ms", 1'000},
                                         {"us", 1}}};

constexpr int64_t kMaxMicros = 36'500 * kUnits[0].micros;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::unexpected<Error> NotADuration() {
  return Invalid("must be a duration such as 90, 90s, 10m or 1h30m");
}

// The next unit's name: the letters up to the next digit.
std::string_view TakeLetters(std::string_view& text) {
  size_t length = 0;
  while (length < text.size() && !IsDigit(text[length]) && text[length] != '.') ++length;
  const std::string_view letters = text.substr(0, length);
  text.remove_prefix(length);
  return letters;
}

struct Number {
  int64_t whole = 0;
  int64_t millionths = 0;
};

std::optional<Number> TakeNumber(std::string_view& text) {
  Number number;
  bool any = false;
  for (; !text.empty() && IsDigit(text[0]); text.remove_prefix(1)) {
    any = true;
    // Beyond this it is too long whatever the unit; stopping here keeps the product in range.
    if (number.whole <= kMaxMicros) number.whole = number.whole * 10 + (text[0] - '0');
  }
  if (!any) return std::nullopt;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (text.empty() || !IsDigit(text[0])) return std::nullopt;
    int64_t place = 100'000;
    for (; !text.empty() && IsDigit(text[0]); text.remove_prefix(1), place /= 10) {
      number.millionths += (text[0] - '0') * place;
    }
  }
  return number;
}

int64_t Seconds(Duration duration) {
  return std::max<int64_t>(0, std::chrono::floor<std::chrono::seconds>(duration).count());
}

}  // namespace

Result<Duration> ParseDuration(std::string_view text) {
  if (text.starts_with('-')) return Invalid("must not be negative");
  if (text.empty()) return NotADuration();
  __int128 total = 0;
  size_t next_unit = 0;
  const bool bare = text.find_first_not_of("0123456789.") == std::string_view::npos;
  while (!text.empty()) {
    const auto number = TakeNumber(text);
    if (!number) return NotADuration();
    const std::string_view name = bare ? "s" : TakeLetters(text);
    size_t unit = next_unit;
    while (unit < kUnits.size() && kUnits[unit].name != name) ++unit;
    if (unit == kUnits.size()) return NotADuration();
    next_unit = unit + 1;
    const __int128 micros = kUnits[unit].micros;
    total += number->whole * micros + number->millionths * micros / 1'000'000;
  }
  if (total > kMaxMicros) return Invalid("must be at most 100 years");
  return Duration(static_cast<int64_t>(total));
}

std::string FormatDuration(Duration duration) {
  const int64_t seconds = Seconds(duration);
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string FormatShortDuration(Duration duration) {
  const int64_t seconds = Seconds(duration);
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 86'400) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86'400);
}

}  // namespace base
