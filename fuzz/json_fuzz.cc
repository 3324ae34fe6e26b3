// Any text is parsed or refused; what was parsed is the same after writing and parsing again, up to
// the last digits of a number: Boost.JSON 1.81 does not round to the nearest double.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json.h"

namespace {

using base::Json;

bool IsNear(double a, double b) { return a == b || std::fabs(a - b) <= 1e-12 * std::fabs(a); }

bool IsSame(const Json& a, const Json& b) {
  // Once written, a number without fraction is an integer, and one beyond a double is null.
  if (a.is_double() && !std::isfinite(a.get_double())) return b.is_null();
  if (a.is_number() && b.is_number()) {
    return a == b || IsNear(a.to_number<double>(), b.to_number<double>());
  }
  if (a.is_array() && b.is_array()) {
    return std::ranges::equal(a.get_array(), b.get_array(), IsSame);
  }
  if (a.is_object() && b.is_object()) {
    return std::ranges::equal(a.get_object(), b.get_object(), [](const auto& x, const auto& y) {
      return x.key() == y.key() && IsSame(x.value(), y.value());
    });
  }
  return a == b;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto value = base::ParseJson(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!value) return 0;
  const auto compact = base::ParseJson(base::CompactJson(*value));
  CHECK(compact && IsSame(*value, *compact));
  const auto indented = base::ParseJson(base::IndentedJson(*value));
  CHECK(indented && IsSame(*value, *indented));
  return 0;
}
