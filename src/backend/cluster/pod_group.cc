#include "backend/cluster/pod_group.h"

#include <algorithm>
#include <map>

#include "base/quantity.h"
#include "base/strings.h"

namespace backend::cluster {
namespace {

using api::Role;
using base::Json;
using base::JsonArray;
using base::JsonObject;

bool IsVolcano(const Settings& settings) {
  return base::Lower(settings.gang_scheduler) == "volcano";
}

int32_t Total(const api::Job& job) {
  int32_t total = 0;
  for (const auto& [role, spec] : job.spec.replicas) total += spec.replicas;
  return total;
}

int32_t MinMember(const api::Job& job) {
  const auto& policy = job.spec.run_policy.scheduling_policy;
  return policy && policy->min_available ? *policy->min_available : Total(job);
}

}  // namespace

std::string PodGroupVersion(const Settings& settings) {
  return IsVolcano(settings) ? "scheduling.volcano.sh/v1beta1" : "scheduling.x-k8s.io/v1alpha1";
}

Json MakePodGroup(const api::Job& job, const Settings& settings) {
  const api::SchedulingPolicy policy =
      job.spec.run_policy.scheduling_policy.value_or(api::SchedulingPolicy());
  JsonObject spec;
  spec["minMember"] = MinMember(job);
  if (policy.min_resources) spec["minResources"] = *policy.min_resources;
  if (IsVolcano(settings)) {
    spec["queue"] = policy.queue.empty() ? "default" : policy.queue;
    if (!policy.priority_class.empty()) spec["priorityClassName"] = policy.priority_class;
  } else if (policy.schedule_timeout_seconds) {
    spec["scheduleTimeoutSeconds"] = *policy.schedule_timeout_seconds;
  }
  JsonObject annotations;
  for (const auto& [key, value] : job.metadata.annotations) {
    if (key != "kubectl.kubernetes.io/last-applied-configuration") annotations[key] = value;
  }
  JsonObject metadata = {{"name", job.metadata.name}, {"namespace", job.metadata.name_space}};
  metadata["labels"] = JsonObject{{kOperatorLabel, kOperatorName}, {kJobLabel, job.metadata.name}};
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  metadata["ownerReferences"] = JsonArray{OwnerReference(job)};
  return JsonObject{{"apiVersion", PodGroupVersion(settings)},
                    {"kind", "PodGroup"},
                    {"metadata", std::move(metadata)},
                    {"spec", std::move(spec)}};
}

bool PodsMayStart(const Json& pod_group, const Settings& settings) {
  if (!IsVolcano(settings)) return true;
  const Json* status = base::Find(pod_group, "status");
  const std::string phase = status ? base::StringOr(*status, "phase") : "";
  return !phase.empty() && phase != "Pending";
}

void JoinPodGroup(const api::Job& job, api::ReplicaId id, const Settings& settings,
                  JsonObject& metadata, JsonObject& spec) {
  const auto set = [&](std::string_view map, std::string_view key, std::string_view value) {
    Json& target = metadata[map];
    if (!target.is_object()) target.emplace_object();
    target.get_object()[key] = value;
  };
  if (!spec.contains("schedulerName")) {
    spec["schedulerName"] = IsVolcano(settings) ? "volcano" : settings.gang_scheduler;
  }
  if (IsVolcano(settings)) {
    set("annotations", "scheduling.k8s.io/group-name", job.metadata.name);
    set("annotations", "volcano.sh/task-spec", api::LowerName(id.role));
  } else {
    set("labels", "scheduling.x-k8s.io/pod-group", job.metadata.name);
  }
}

}  // namespace backend::cluster
