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

std::string_view Name(CleanPodPolicy policy) {
  switch (policy) {
    case CleanPodPolicy::kNone:
      return "None";
    case CleanPodPolicy::kRunning:
      return "Running";
    case CleanPodPolicy::kAll:
      return "All";
  }
  return "";
}

std::string_view Name(SuccessPolicy policy) {
  return policy == SuccessPolicy::kAllWorkers ? "AllWorkers" : "";
}

std::string_view Name(RestartScope scope) {
  switch (scope) {
    case RestartScope::kAuto:
      return "Auto";
    case RestartScope::kReplica:
      return "Replica";
    case RestartScope::kJob:
      return "Job";
  }
  return "";
}

std::string_view Name(Dialect dialect) {
  switch (dialect) {
    case Dialect::kTfJob:
      return "TFJob";
    case Dialect::kTfSpawner:
      return "TF-Spawner";
    case Dialect::kElasticDl:
      return "ElasticDL";
  }
  return "";
}

int32_t ReplicasOf(const JobSpec& spec, Role role) {
  const auto found = spec.replicas.find(role);
  return found == spec.replicas.end() ? 0 : found->second.replicas;
}

}  // namespace api
