// An environment file is read or refused; what was read can be written and reads back the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/env_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = base::ParseEnvFile(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!read) return 0;
  std::string written;
  for (const auto& [key, value] : *read) {
    CHECK(key.find('=') == std::string::npos);
    CHECK(value.find('\n') == std::string::npos && value.find('\0') == std::string::npos);
    written += key + "=" + value + "\r\n";
  }
  const auto back = base::ParseEnvFile(written);
  CHECK(written.size() > base::kMaxEnvFile || (back && *back == *read));
  return 0;
}
