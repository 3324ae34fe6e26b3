// Any manifest is decoded or refused with errors that fit a line each; a job that was decoded can
// be written and is decoded again as the same job.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/decode.h"
#include "base/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const api::Decoded decoded = api::DecodeJob(text);
  const std::string told = api::Describe(decoded.errors, "x.yaml");
  CHECK(static_cast<size_t>(std::ranges::count(told, '\n')) == decoded.errors.size());
  if (!decoded.errors.empty()) return 0;
  const std::string written = base::WriteYaml(api::EncodeJob(decoded.job));
  if (written.size() > base::kMaxYamlText) return 0;  // grown by aliases
  const api::Decoded again = api::DecodeJob(written);
  CHECK(again.errors.empty());
  CHECK(again.job == decoded.job);
  return 0;
}
