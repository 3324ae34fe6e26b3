// What travels to a cluster with a job: its code, the values of its env file, a claim for what it
// makes. From values to objects; only the packing of a directory reads files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace cli {

// Where things are in a pod that was made from a script.
inline constexpr std::string_view kCodeMount = "/trainyard/code";
inline constexpr std::string_view kOutputMount = "/trainyard/output";
inline constexpr std::string_view kCheckpointMount = "/trainyard/checkpoints";
inline constexpr std::string_view kLogMount = "/trainyard/tensorboard";
// Kubernetes refuses objects over 1.5 MiB and ConfigMaps over 1 MiB of data.
inline constexpr size_t kMostCode = size_t{1} << 20;

// Files by the path that they have below the mount, byte for byte.
using Code = std::map<std::string, std::string>;

// The files of a directory, without what is hidden or made by Python itself. A link that leads out
// of it, and more than a ConfigMap holds, is refused.
base::Result<Code> PackDirectory(const std::string& directory);

base::Json CodeConfigMap(const std::string& name, const std::string& name_space, const Code& code);
// The volume of that ConfigMap which lays the files out as they were.
base::Json CodeVolume(const std::string& config_map, const Code& code);

using Values = std::map<std::string, std::string>;
base::Json EnvSecret(const std::string& name, const std::string& name_space, const Values& values);

// What --output asks for.
struct OutputWish {
  enum class Kind { kNew, kClaim, kUrl, kNone };
  Kind kind = Kind::kNew;
  std::string size = "10Gi", storage_class;  // of a new claim
  std::string claim, path;                   // of one that is there
  std::string url;
};
base::Result<OutputWish> ParseOutput(const std::string& text);

base::Json OutputClaim(const std::string& name, const std::string& name_space,
                       const OutputWish& wish, bool shared);

}  // namespace cli
