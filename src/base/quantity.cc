#include "base/quantity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include "base/strings.h"

namespace base {
namespace {

using Wide = unsigned __int128;

struct Suffix {
  std::string_view text;
  int tens;  // the power of 10
  int twos;  // the power of 2
};

constexpr std::array<Suffix, 16> kSuffixes = {{{"", 0, 0},
                                               {"n", -9, 0},
                                               {"u", -6, 0},
                                               {"m", -3, 0},
                                               {"k", 3, 0},
                                               {"M", 6, 0},
                                               {"G", 9, 0},
                                               {"T", 12, 0},
                                               {"P", 15, 0},
                                               {"E", 18, 0},
                                               {"Ki", 0, 10},
                                               {"Mi", 0, 20},
                                               {"Gi", 0, 30},
                                               {"Ti", 0, 40},
                                               {"Pi", 0, 50},
                                               {"Ei", 0, 60}}};

// Any 64-bit number has fewer; more would not fit the arithmetic below.
constexpr size_t kMaxDigits = 20;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::optional<Suffix> SuffixOf(std::string_view text) {
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.text == text) return suffix;
  }
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    if (text[0] == '+') text.remove_prefix(1);
    if (text.empty() || text[0] == '+') return std::nullopt;
    const auto exponent = ParseInt(text);
    if (exponent) {
      return Suffix{{}, static_cast<int>(std::clamp<int64_t>(*exponent, -1000, 1000)), 0};
    }
  }
  return std::nullopt;
}

std::unexpected<Error> NotAQuantity() {
  return Invalid("must be a quantity such as 2, 500m, 1.5, 512Mi or 4G");
}

// digits * 10^tens * 2^twos, rounded up, or nothing when beyond an int64.
std::optional<int64_t> Scale(Wide digits, int tens, int twos) {
  constexpr Wide kMax = static_cast<Wide>(std::numeric_limits<int64_t>::max());
  if (digits == 0) return 0;
  bool rest = false;
  // Multiplied in before the division, which loses digits: 10^20 * 2^60 fits 128 bits.
  if (tens < 0) {
    digits <<= twos;
    twos = 0;
  }
  for (; tens < 0 && digits > 0; ++tens) {
    rest = rest || digits % 10 != 0;
    digits /= 10;
  }
  for (; tens > 0; --tens) {
    digits *= 10;
    if (digits > kMax) return std::nullopt;
  }
  for (; twos > 0; --twos) {
    digits *= 2;
    if (digits > kMax) return std::nullopt;
  }
  if (rest) ++digits;
  if (digits > kMax) return std::nullopt;
  return static_cast<int64_t>(digits);
}

Result<int64_t> Parse(std::string_view text, int milli) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  Wide digits = 0;
  size_t significant = 0;
  int tens = milli;
  bool any = false;
  bool point = false;
  for (; !rest.empty() && (IsDigit(rest[0]) || (rest[0] == '.' && !point)); rest.remove_prefix(1)) {
    if (rest[0] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (significant > 0 || rest[0] != '0') ++significant;
    if (significant > kMaxDigits || tens < -1000) return Invalid("has too many digits");
    digits = digits * 10 + static_cast<Wide>(rest[0] - '0');
    if (point) --tens;
  }
  const auto suffix = SuffixOf(rest);
  if (!any || !suffix) return NotAQuantity();
  if (negative && digits != 0) return Invalid("must not be negative");
  const auto value = Scale(digits, tens + suffix->tens, suffix->twos);
  if (!value) return Invalid("is too large");
  return *value;
}

}  // namespace

Result<int64_t> ParseQuantity(std::string_view text) { return Parse(text, 0); }

Result<int64_t> ParseMilliQuantity(std::string_view text) { return Parse(text, 3); }

Result<int64_t> ParseMemory(std::string_view text) {
  std::string folded = Lower(Trim(text));
  if (folded.ends_with('b')) folded.pop_back();
  const bool binary = folded.ends_with('i');
  if (binary) folded.pop_back();
  if (folded.empty()) return NotAQuantity();
  constexpr std::string_view kUnits = "kmgtpe";
  if (kUnits.find(folded.back()) != std::string_view::npos) {
    if (binary || folded.back() != 'k') folded.back() = static_cast<char>(folded.back() - 32);
  } else if (binary || !(IsDigit(folded.back()) || folded.back() == '.')) {
    return Invalid("must be an amount of memory such as 512Mi, 2G or 1500000");
  }
  if (binary) folded += 'i';
  return ParseQuantity(folded);
}

std::string FormatBytes(int64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  double value = std::fabs(static_cast<double>(bytes));
  size_t unit = 0;
  // 1023.5 would be printed as 1024.
  for (; unit + 1 < kUnits.size() && value >= (unit == 0 ? 1024 : 1023.5); ++unit) value /= 1024;
  const std::string sign = bytes < 0 ? "-" : "";
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::string number = fmt::format("{:.{}f}", value, decimals);
  if (decimals > 0) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.ends_with('.')) number.pop_back();
  }
  return sign + number + std::string(kUnits[unit]);
}

}  // namespace base
