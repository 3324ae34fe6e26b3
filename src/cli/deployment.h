// What the operator consists of on a cluster: the manifests of deploy/, as they are in the program.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace cli {

inline constexpr std::string_view kSystemNamespace = "trainyard-system";
inline constexpr std::string_view kOperatorDeployment = "trainyard-operator";

struct DeploymentWish {
  std::string name_space = std::string(kSystemNamespace);
  std::string image;                             // empty: the one of deploy/operator.yaml
  std::vector<std::string> flags;                // of `trainyard operator`, beside those it has
  std::map<std::string, std::string> variables;  // of its environment
  // deploy/storage-*.yaml as well: "nfs", "hostpath"; empty: neither. And where its claim is.
  std::string storage;
  std::string claim_namespace;
};

// In the order in which they must be made: whatever another needs comes before it.
std::vector<base::Json> OperatorObjects(const DeploymentWish& wish);

// "Deployment trainyard-system/trainyard-operator"
std::string Spoken(const base::Json& object);

}  // namespace cli
