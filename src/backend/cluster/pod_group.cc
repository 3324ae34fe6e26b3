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

std::string SchedulerOf(const Settings& settings) {
  return IsVolcano(settings) ? "volcano" : settings.gang_scheduler;
}

// How many of a role must be there for the job to start: of an elastic one's workers the fewest.
int32_t Needed(const api::Job& job, Role role) {
  const int32_t all = api::ReplicasOf(job.spec, role);
  const auto& elastic = job.extensions.elastic;
  return role == Role::kWorker && elastic ? std::min(all, elastic->min) : all;
}

int32_t Total(const api::Job& job) {
  int32_t total = 0;
  for (const auto& [role, spec] : job.spec.replicas) total += Needed(job, role);
  return total;
}

int32_t MinMember(const api::Job& job) {
  const auto& policy = job.spec.run_policy.scheduling_policy;
  return policy && policy->min_available ? *policy->min_available : Total(job);
}

// What one pod asks for: the requests of its containers, or the limits of those without requests.
void AddResources(const Json& pod_template, int64_t pods, std::map<std::string, int64_t>& milli) {
  const Json* spec = base::Find(pod_template, "spec");
  const Json* containers = spec ? base::Find(*spec, "containers") : nullptr;
  if (!containers || !containers->is_array()) return;
  for (const Json& container : containers->get_array()) {
    const Json* resources = base::Find(container, "resources");
    if (!resources) continue;
    const Json* list = base::Find(*resources, "requests");
    if (!list) list = base::Find(*resources, "limits");
    if (!list || !list->is_object()) continue;
    for (const auto& [name, amount] : list->get_object()) {
      const std::string text =
          amount.is_string() ? std::string(amount.get_string()) : base::CompactJson(amount);
      if (const auto each = base::ParseMilliQuantity(text)) {
        int64_t all = 0;
        if (__builtin_mul_overflow(*each, pods, &all)) continue;
        if (__builtin_add_overflow(milli[name], all, &milli[name])) milli[name] = INT64_MAX;
      }
    }
  }
}

// Of the first minMember pods, in the order chiefs, masters, PS, workers, evaluators.
JsonObject MinResources(const api::Job& job) {
  std::map<std::string, int64_t> milli;
  int64_t left = MinMember(job);
  for (Role role : {Role::kChief, Role::kMaster, Role::kPs, Role::kWorker, Role::kEvaluator}) {
    const int64_t pods = std::min<int64_t>(left, Needed(job, role));
    if (pods <= 0) continue;
    AddResources(job.spec.replicas.at(role).pod_template, pods, milli);
    left -= pods;
  }
  JsonObject out;
  for (const auto& [name, amount] : milli) {
    out[name] = amount % 1000 == 0 ? std::to_string(amount / 1000) : std::to_string(amount) + "m";
  }
  return out;
}

}  // namespace

std::string PodGroupVersion(const Settings& settings) {
  return IsVolcano(settings) ? "scheduling.volcano.sh/v1beta1" : "scheduling.x-k8s.io/v1alpha1";
}

Json MakePodGroup(const api::Job& job, const Settings& settings, const PodGroup* there) {
  const api::SchedulingPolicy policy =
      job.spec.run_policy.scheduling_policy.value_or(api::SchedulingPolicy());
  JsonObject spec;
  spec["minMember"] = MinMember(job);
  if (policy.min_resources) {
    spec["minResources"] = *policy.min_resources;
  } else if (JsonObject sum = MinResources(job); !sum.empty()) {
    spec["minResources"] = std::move(sum);
  }
  if (IsVolcano(settings)) {
    const std::string queue = there ? base::StringOr(there->spec, "queue") : "";
    spec["queue"] = !queue.empty() ? queue : policy.queue.empty() ? "default" : policy.queue;
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

bool IsUpToDate(const PodGroup& group, const api::Job& job, const Settings& settings) {
  const Json wanted = MakePodGroup(job, settings, &group);
  for (const auto& [key, value] : wanted.at("spec").get_object()) {
    const Json* there = base::Find(group.spec, key);
    if (!there || *there != value) return false;
  }
  return true;
}

bool PodsMayStart(const PodGroup& group, const Settings& settings) {
  return !IsVolcano(settings) || (!group.phase.empty() && group.phase != "Pending");
}

bool NamesAnotherScheduler(const api::Job& job, const Settings& settings) {
  return std::ranges::any_of(job.spec.replicas, [&](const auto& entry) {
    const Json* spec = base::Find(entry.second.pod_template, "spec");
    const std::string name = spec ? base::StringOr(*spec, "schedulerName") : "";
    return !name.empty() && name != SchedulerOf(settings);
  });
}

void JoinPodGroup(const api::Job& job, api::ReplicaId id, const Settings& settings,
                  JsonObject& metadata, JsonObject& spec) {
  const auto set = [&](std::string_view map, std::string_view key, std::string_view value) {
    Json& target = metadata[map];
    if (!target.is_object()) target.emplace_object();
    target.get_object()[key] = value;
  };
  if (const Json* named = spec.if_contains("schedulerName"); !named || *named == "") {
    spec["schedulerName"] = SchedulerOf(settings);
  }
  if (IsVolcano(settings)) {
    set("annotations", "scheduling.k8s.io/group-name", job.metadata.name);
    set("annotations", "volcano.sh/task-spec", api::LowerName(id.role));
  } else {
    set("labels", "scheduling.x-k8s.io/pod-group", job.metadata.name);
  }
}

}  // namespace backend::cluster
