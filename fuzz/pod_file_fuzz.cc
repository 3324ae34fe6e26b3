// Pod templates: whatever is taken for one, pods can be made of it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "cli/tf_spawner.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto pod = cli::ReadPodFile(text, "pod.yaml");
  if (!pod) {
    CHECK(pod.error().kind() == base::ErrorKind::kInvalid);
    return 0;
  }
  const cli::Spawn spawn{.tag = "x", .command = "true", .env = {{"A", "b"}}, .pod = *pod};
  CHECK(cli::PiecesOf(spawn).size() == 6);
  return 0;
}
