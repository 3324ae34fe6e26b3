// Any text is parsed or refused; what was parsed is the same after writing and parsing again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto value = base::ParseJson(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!value) return 0;
  CHECK(base::CompactJson(*base::ParseJson(base::IndentedJson(*value))) ==
        base::CompactJson(*base::ParseJson(base::CompactJson(*value))));
  // Once written, a number without fraction is an integer (1.0 as 1, -0.0 as -0, which reads as 0);
  // from then on nothing changes.
  const auto once = base::ParseJson(base::CompactJson(*value));
  CHECK(once);
  const auto twice = base::ParseJson(base::CompactJson(*once));
  CHECK(twice);
  CHECK(*twice == *once);
  return 0;
}
