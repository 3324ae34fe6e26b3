// The small languages of ElasticDL's options: the first byte says which. What is taken can be
// written again and is taken for the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/elasticdl_grammar.h"

namespace {

void Resources(std::string_view text) {
  auto read = cli::ParseEdlResources(text);
  if (!read) return;
  std::string again;
  for (const auto& [name, amount] : *read) {
    std::string unit(amount.get_string());
    if (unit.ends_with('k')) unit.back() = 'K';
    again += (again.empty() ? "" : ",") + std::string(name) + "=" + unit;
  }
  auto same = cli::ParseEdlResources(again);
  CHECK(same && *same == *read);
}

void Envs(std::string_view text) {
  auto read = cli::ParseEdlEnvs(text);
  if (!read || read->empty()) return;
  std::string again;
  for (const auto& [name, value] : *read) again += (again.empty() ? "" : ",") + name + "=" + value;
  CHECK(cli::ParseEdlEnvs(again) == read);
}

void Volumes(std::string_view text) {
  auto read = cli::ParseEdlVolumes(text);
  if (!read) return;
  for (const cli::EdlVolume& volume : *read) {
    CHECK(volume.claim_name.empty() != volume.host_path.empty());
    CHECK(volume.mount_path.starts_with('/') && volume.mount_path.size() > 1);
  }
}

void Priority(std::string_view text) {
  for (int32_t workers : {1, 2, 7}) {
    auto read = cli::ParseEdlPriority(text, workers);
    CHECK(!read || read->size() == static_cast<size_t>(workers));
  }
}

void ClusterSpec(std::string_view text) {
  auto read = cli::EdlClusterSpec::Parse(text);
  if (!read) return;
  base::JsonObject pod, service;
  for (const char* who : {"worker", "edl-master"}) read->ChangePod(who, pod);
  read->ChangeService(service);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'r':
      Resources(text);
      break;
    case 'e':
      Envs(text);
      break;
    case 'v':
      Volumes(text);
      break;
    case 'p':
      Priority(text);
      break;
    case 'c':
      ClusterSpec(text);
      break;
    default:
      base::IgnoreError(cli::DisablesRelaunch(text), "only that it returns matters");
  }
  return 0;
}
