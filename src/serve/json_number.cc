#include "serve/json_number.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace serve {
namespace {

template <typename Number>
bool ReadAny(std::string_view text, Number& value) {
  if (text == "NaN") {
    value = std::numeric_limits<Number>::quiet_NaN();
    return true;
  }
  if (text.ends_with("Infinity")) {
    value = std::numeric_limits<Number>::infinity() * (text[0] == '-' ? -1 : 1);
    return true;
  }
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc()) return true;
  // Too small to be told from 0 is 0; too large is not.
  long double wide = 0;
  const auto again = std::from_chars(text.data(), text.data() + text.size(), wide);
  if (again.ec == std::errc() && std::fabs(wide) > 1) return false;
  if (again.ec != std::errc() && text.find("e-") == std::string_view::npos &&
      text.find("E-") == std::string_view::npos)
    return false;
  value = 0;
  return true;
}

}  // namespace

bool ReadReal(std::string_view text, float& value) { return ReadAny(text, value); }
bool ReadReal(std::string_view text, double& value) { return ReadAny(text, value); }

}  // namespace serve
