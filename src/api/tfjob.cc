#include "api/tfjob.h"

namespace api {

std::string_view Name(RestartPolicy policy) {
  switch (policy) {
    case RestartPolicy::kNever:
      return "Never";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kExitCode:
      return "ExitCode";
  }
  return "";
}

int32_t ReplicasOf(const JobSpec& spec, Role role) {
  const auto it = spec.replicas.find(role);
  return it == spec.replicas.end() ? 0 : it->second.replicas;
}

}  // namespace api
