#include "api/generate.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace api {
namespace {

using base::Invalid;
using base::Result;

constexpr std::string_view kAlphanumerics =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr std::string_view kDigits = kAlphanumerics.substr(52);
constexpr std::string_view kPunctuation = "~!@#$%^&*()-_+={}[]\\|<,>.?/\"';:`";
constexpr int64_t kMostDrawn = 255;   // by one [...], as oc
constexpr size_t kMostInAll = 4'096;  // of a value: a name or a password needs no more

// What \w and the like stand for; empty: nothing.
std::string ClassOf(char letter) {
  switch (letter) {
    case 'd':
      return std::string(kDigits);
    case 'a':
      return std::string(kAlphanumerics);
    case 'w':
      return std::string(kAlphanumerics) + "_";
    case 'A':
      return std::string(kPunctuation);
    default:
      return "";
  }
}

// Takes one part off the front of what stands between brackets: \w, a-z or a single character.
Result<std::string> TakePart(std::string_view& ranges) {
  if (ranges.front() == '\\') {
    const std::string part = ranges.size() > 1 ? ClassOf(ranges[1]) : "";
    if (part.empty()) return Invalid("after \\ comes one of w, d, a and A");
    ranges.remove_prefix(2);
    return part;
  }
  const bool is_range = ranges.size() > 2 && ranges[1] == '-';
  const size_t first = kAlphanumerics.find(ranges[0]);
  const size_t last = kAlphanumerics.find(ranges[is_range ? 2 : 0]);
  if (first == std::string_view::npos || last == std::string_view::npos || first > last) {
    return Invalid("no letters, digits or a range of them: " + base::OneLine(ranges));
  }
  ranges.remove_prefix(is_range ? 3 : 1);
  return std::string(kAlphanumerics.substr(first, last - first + 1));
}

Result<std::string> Alphabet(std::string_view ranges) {
  std::string out;
  if (ranges.empty()) return Invalid("[] names no characters");
  while (!ranges.empty()) out += TRY(TakePart(ranges));
  return out;
}

// Takes [RANGES]{LENGTH} off the front and draws from it.
Result<std::string> Draw(std::string_view& expression, const Random& random) {
  const size_t close = expression.find("]{");
  const size_t end = close == expression.npos ? close : expression.find('}', close);
  if (end == expression.npos) return Invalid("after [...] comes a length, such as {8}");
  const auto length = base::ParseInt(expression.substr(close + 2, end - close - 2));
  if (!length || *length < 1 || *length > kMostDrawn) {
    return Invalid(fmt::format("a length must be between 1 and {}", kMostDrawn));
  }
  const std::string alphabet = TRY(Alphabet(expression.substr(1, close - 1)));
  expression.remove_prefix(end + 1);
  std::string out;
  for (int64_t i = 0; i < *length; ++i) out += alphabet[random(alphabet.size())];
  return out;
}

}  // namespace

Result<std::string> Generate(std::string_view expression, const Random& random) {
  std::string out;
  while (!expression.empty()) {
    const size_t plain = std::min(expression.find('['), expression.size());
    out += expression.substr(0, plain);
    expression.remove_prefix(plain);
    if (!expression.empty()) out += TRY(Draw(expression, random));
    if (out.size() > kMostInAll) {
      return Invalid(fmt::format("makes more than {} characters", kMostInAll));
    }
  }
  return out;
}

}  // namespace api
