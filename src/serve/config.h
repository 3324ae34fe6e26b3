// Which models to serve, and which of their versions. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace tensorflow::serving {
class ModelServerConfig;
}

namespace serve {

struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  uint32_t latest = 1;            // how many
  std::vector<int64_t> specific;  // which

  bool operator==(const VersionPolicy&) const = default;
};

struct ModelConfig {
  std::string name;
  std::string base_path;
  VersionPolicy policy;
  std::map<std::string, int64_t> labels;

  bool operator==(const ModelConfig&) const = default;
};

// A ModelServerConfig as text, TensorFlow Serving's --model_config_file. An error names the line.
base::Result<std::vector<ModelConfig>> ParseConfig(const std::string& text);
base::Result<std::vector<ModelConfig>> FromProto(
    const tensorflow::serving::ModelServerConfig& config);

// Which of these versions a policy means, in ascending order.
std::vector<int64_t> Wanted(const VersionPolicy& policy, const std::vector<int64_t>& versions);

// Fits into a URL and on a line.
bool IsModelName(const std::string& name);

}  // namespace serve
