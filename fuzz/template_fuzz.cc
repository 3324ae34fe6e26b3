// Any file is read or refused with errors that fit a line each; a job that was read can be written
// and is read again as the same job, and so can what stands beside it. A line "#NAME=VALUE", which
// is a comment to YAML, gives a parameter.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/manifest.h"
#include "base/strings.h"
#include "base/yaml.h"

namespace {

api::Values GivenIn(std::string_view text) {
  api::Values given;
  for (std::string_view line : base::Split(text, '\n')) {
    const size_t equals = line.find('=');
    if (!line.starts_with('#') || equals == line.npos) continue;
    given.emplace(base::CleanUtf8(line.substr(1, equals - 1)),
                  base::CleanUtf8(line.substr(equals + 1)));
  }
  return given;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t drawn = 0;
  const auto random = [&drawn](size_t below) { return drawn++ % below; };
  const api::Manifest manifest = api::ReadManifest(text, GivenIn(text), random);
  const std::string told = api::Describe(manifest.errors, "x.yaml");
  CHECK(static_cast<size_t>(std::ranges::count(told, '\n')) == manifest.errors.size());
  if (!manifest.errors.empty()) return 0;
  std::string written = base::WriteYaml(api::EncodeJob(manifest.job));
  for (const base::Json& other : manifest.others) written += "---\n" + base::WriteYaml(other);
  if (written.size() > base::kMaxYamlText) return 0;  // grown by aliases or parameters
  const api::Manifest again = api::ReadManifest(written, {}, random);
  CHECK(again.errors.empty());
  CHECK(again.job == manifest.job);
  CHECK(again.others == manifest.others);
  return 0;
}
