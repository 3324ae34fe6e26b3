// A sweep file is read or refused; the words that come out of it are flags.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "cli/sweep_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file =
      cli::ReadSweepFile(std::string_view(reinterpret_cast<const char*>(data), size), "sweep.yaml");
  if (!file) {
    CHECK(file.error().kind() == base::ErrorKind::kInvalid);
    CHECK(file.error().text().starts_with("sweep.yaml:"));
    return 0;
  }
  CHECK(file->script.empty() != file->manifest.empty());
  for (const std::string& flag : file->flags) CHECK(flag.starts_with("--"));
  return 0;
}
