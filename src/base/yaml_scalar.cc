#include "base/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace base {
namespace {

template <size_t N>
bool IsOneOf(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, text) != words.end();
}

constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 11> kTrue = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                    "True", "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 11> kFalse = {"n",     "N",     "no",  "No",  "NO", "false",
                                                     "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 6> kInfinity = {".inf",  ".Inf",  ".INF",
                                                       "+.inf", "+.Inf", "+.INF"};
constexpr std::array<std::string_view, 3> kMinusInfinity = {"-.inf", "-.Inf", "-.INF"};
constexpr std::array<std::string_view, 3> kNaN = {".nan", ".NaN", ".NAN"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Go's strconv.ParseInt(text, 0, 64), then ParseUint: 12, -0x1f, 0o17, 017, 0b11.
std::optional<Json> Integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  uint64_t magnitude = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, magnitude, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  if (negative) {
    if (magnitude > kMax + 1) return std::nullopt;
    return Json(static_cast<int64_t>(-magnitude));
  }
  if (magnitude > kMax) return Json(magnitude);
  return Json(static_cast<int64_t>(magnitude));
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool LooksLikeDouble(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t from = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return at - from;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const size_t whole = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0 && whole == 0) return false;
  } else if (whole == 0) {
    return false;
  }
  if (at < text.size() && (text[at] | 0x20) == 'e') {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

// Nothing where the value is beyond a double: kubectl leaves such a number text.
std::optional<Json> Double(std::string_view text) {
  if (!LooksLikeDouble(text)) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Too small is nought (as in Go), too large is no number.
    const size_t exponent = text.find_first_of("eE");
    if (exponent == std::string_view::npos || text[exponent + 1] != '-') return std::nullopt;
    value = 0;
  }
  return Json(value);
}

}  // namespace

Json ResolvePlain(std::string_view text) {
  if (IsOneOf(text, kNull)) return nullptr;
  if (IsOneOf(text, kTrue)) return true;
  if (IsOneOf(text, kFalse)) return false;
  if (IsOneOf(text, kInfinity)) return std::numeric_limits<double>::infinity();
  if (IsOneOf(text, kMinusInfinity)) return -std::numeric_limits<double>::infinity();
  if (IsOneOf(text, kNaN)) return std::numeric_limits<double>::quiet_NaN();
  if (IsDigit(text[0]) || text[0] == '-' || text[0] == '+') {
    std::string plain(text);
    std::erase(plain, '_');
    if (auto value = Integer(plain)) return *value;
    if (auto value = Double(plain)) return *value;
  } else if (text[0] == '.') {
    // Here go-yaml leaves underscores to Go's number parser, which wants a digit on both sides.
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool separates =
          text[i] == '_' && i + 1 < text.size() && IsDigit(text[i - 1]) && IsDigit(text[i + 1]);
      if (!separates) plain += text[i];
    }
    if (auto value = Double(plain)) return *value;
  }
  return Json(text);
}

}  // namespace base
