// A duration is read or refused; one that was read is not negative and can be shown.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/duration.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto duration =
      base::ParseDuration(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!duration) return 0;
  CHECK(duration->count() >= 0);
  CHECK(*base::ParseDuration(std::to_string(duration->count()) + "us") == *duration);
  CHECK(!base::FormatDuration(*duration).empty());
  CHECK(!base::FormatShortDuration(*duration).empty());
  return 0;
}
