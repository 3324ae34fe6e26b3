// A quantity is read or refused, never negative; thousandths agree with units.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/quantity.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto units = base::ParseQuantity(text);
  const auto milli = base::ParseMilliQuantity(text);
  if (units) {
    CHECK(*units >= 0);
    CHECK(!base::FormatBytes(*units).empty());
  }
  if (units && milli) CHECK(*milli > INT64_MAX - 999 || (*milli + 999) / 1000 == *units);
  if (milli) CHECK(units.has_value());
  if (const auto memory = base::ParseMemory(text)) CHECK(*memory >= 0);
  return 0;
}
