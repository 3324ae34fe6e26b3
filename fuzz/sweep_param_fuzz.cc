// What stands after --param is read or refused; what was read describes itself, and every value it
// suggests has a text that means the same value.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sweep/space.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parameter =
      sweep::ParseParameter(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parameter) {
    CHECK(parameter.error().kind() == base::ErrorKind::kInvalid);
    CHECK(parameter.error().text().find('\n') == std::string::npos);
    return 0;
  }
  // A condition names a parameter that is not there, or this one.
  CHECK(sweep::CheckSpace({*parameter}).has_value() == parameter->when.empty());
  const std::string when = parameter->when.empty() ? "" : " when " + DescribeConditions(*parameter);
  const auto again =
      sweep::ParseParameter(parameter->name + "=" + sweep::Describe(*parameter) + when);
  CHECK(again && *again == *parameter);
  for (double unit : {0.0, 0.3, 0.5, 0.999, 1.0}) {
    const double value = sweep::FromUnit(*parameter, unit);
    CHECK(sweep::ValueFrom(*parameter, sweep::Text(*parameter, value)) == value);
    const double back = sweep::ToUnit(*parameter, value);
    CHECK(back >= 0 && back <= 1);
  }
  CHECK(sweep::ToJson({*parameter}, {sweep::FromUnit(*parameter, 0.5)}).size() == 1);
  return 0;
}
