// What is refused before a cluster hears of it.
#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
#include "base/yaml.h"
#include "cli/tf_spawner.h"

namespace cli {
namespace {

using base::Invalid;
using base::Json;
using base::Result;

constexpr size_t kMostName = 63;               // of a Service, and of the value of a label
constexpr size_t kMostData = size_t{1} << 20;  // of a ConfigMap

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsAlphanumeric(char c) { return IsDigit(c) || IsLower(c) || IsUpper(c); }

// What we set something in must be what Kubernetes takes there.
Result<> CheckTemplate(const Json& pod) {
  const Json nothing;
  const auto at = [&](const Json& parent, std::string_view key) -> const Json& {
    const Json* found = base::Find(parent, key);
    return found ? *found : nothing;
  };
  const auto must = [](bool good, const std::string& words) -> Result<> {
    return good ? Result<>() : Invalid(words);
  };
  const auto object = [](const Json& v) { return v.is_null() || v.is_object(); };
  const auto list = [](const Json& v) { return v.is_null() || v.is_array(); };
  TRY(must(pod.is_object() && base::StringOr(pod, "kind", "Pod") == "Pod", "must be a Pod"));
  TRY(must(object(at(pod, "metadata")), "metadata: must be a map"));
  TRY(must(object(at(at(pod, "metadata"), "labels")), "metadata.labels: must be a map"));
  TRY(must(at(pod, "spec").is_object(), "spec: must be a map"));
  TRY(must(list(at(at(pod, "spec"), "volumes")), "spec.volumes: must be a list"));
  const Json& containers = at(at(pod, "spec"), "containers");
  TRY(must(containers.is_array() && !containers.get_array().empty(),
           "spec.containers: must be a list with a container"));
  for (const Json& container : containers.get_array()) {
    TRY(must(container.is_object(), "spec.containers: must be a list of maps"));
    for (const char* key : {"env", "volumeMounts"}) {
      TRY(must(list(at(container, key)), fmt::format("spec.containers: {}: must be a list", key)));
    }
  }
  return {};
}

// Services are named after the tag, and theirs is the strictest rule for names.
Result<> CheckNames(const std::string& tag, int32_t workers) {
  const bool good = IsLower(tag.front()) && std::ranges::all_of(tag, [](char c) {
                      return IsLower(c) || IsDigit(c) || c == '-';
                    });
  if (!good) {
    return Invalid(
        fmt::format("must be lower-case letters, digits and '-', with a letter first, not '{}': "
                    "services are named after it",
                    tag));
  }
  const std::string longest = NameUnder(tag, WorkerName(workers - 1));
  if (longest.size() <= kMostName) return {};
  return Invalid(fmt::format("must have at most {} characters: a service's name, {}, may have {}",
                             tag.size() - (longest.size() - kMostName), longest, kMostName));
}

}  // namespace

Result<Json> ReadPodFile(std::string_view text, const std::string& name) {
  const auto root = base::ReadYaml(text);
  if (!root) return Invalid(fmt::format("{}:{}", name, root.error().Text()));
  Json pod = base::ToJson(*root);
  TRY_AS(name, CheckTemplate(pod));
  return pod;
}

Result<> CheckTag(const std::string& tag) {
  const bool good = !tag.empty() && tag.size() <= kMostName && IsAlphanumeric(tag.front()) &&
                    IsAlphanumeric(tag.back()) && std::ranges::all_of(tag, [](char c) {
                      return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return Invalid(
      fmt::format("'{}' is no tag: letters, digits, '-', '_' and '.', at most {}, at both ends "
                  "none of the signs",
                  base::OneLine(tag), kMostName));
}

Result<> CheckSpawn(const Spawn& spawn) {
  TRY(CheckTag(spawn.tag));
  TRY_AS("--tag", CheckNames(spawn.tag, spawn.workers));
  // An env file of the most that is read, 1 MiB, always fits a Secret.
  if (spawn.script.size() + spawn.command.value_or("").size() <= kMostData) return {};
  return Invalid(
      "the script is larger than the 1 MiB that a ConfigMap holds: put its modules and data into "
      "an image (-i) or on a volume of the pod template (--pod-file)");
}

}  // namespace cli
