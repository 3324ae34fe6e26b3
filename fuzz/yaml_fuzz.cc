// Any text is read or refused; what was read can be written and reads back as the same value.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto documents = base::ReadYamlDocuments(text);
  if (!documents) {
    CHECK(!documents.error().detail.empty());
    return 0;
  }
  for (const base::Node& node : *documents) {
    const base::Json value = base::ToJson(node);
    const std::string written = base::WriteYaml(value);
    if (written.size() > base::kMaxYamlText) continue;  // grown by aliases
    const auto back = base::ReadYaml(written);
    CHECK(back);
    CHECK(base::ToJson(*back) == value);
  }
  return 0;
}
