#include "api/extensions.h"
#include "api/pod_template.h"
#include "api/tfjob.h"

namespace api {
namespace {

using base::Json;
using base::JsonObject;

Json EncodeTexts(const std::map<std::string, std::string>& texts) {
  JsonObject out;
  for (const auto& [key, value] : texts) out[key] = value;
  return out;
}

Json EncodeMetadata(const Job& job) {
  const Metadata& metadata = job.metadata;
  JsonObject out;
  if (!metadata.name.empty()) out["name"] = metadata.name;
  if (!metadata.generate_name.empty()) out["generateName"] = metadata.generate_name;
  if (!metadata.name_space.empty()) out["namespace"] = metadata.name_space;
  if (!metadata.uid.empty()) out["uid"] = metadata.uid;
  if (!metadata.labels.empty()) out["labels"] = EncodeTexts(metadata.labels);
  auto annotations = metadata.annotations;
  EncodeExtensions(job.extensions, annotations);
  if (!annotations.empty()) out["annotations"] = EncodeTexts(annotations);
  return out;
}

Json EncodeScheduling(const SchedulingPolicy& policy) {
  JsonObject out;
  if (policy.min_available) out["minAvailable"] = *policy.min_available;
  if (!policy.queue.empty()) out["queue"] = policy.queue;
  if (policy.min_resources) out["minResources"] = *policy.min_resources;
  if (!policy.priority_class.empty()) out["priorityClass"] = policy.priority_class;
  if (policy.schedule_timeout_seconds) {
    out["scheduleTimeoutSeconds"] = *policy.schedule_timeout_seconds;
  }
  return out;
}

// Always present, since the Python client of training-operator 1.9 fails without it.
Json EncodeRunPolicy(const RunPolicy& policy) {
  JsonObject out;
  out["cleanPodPolicy"] = Name(policy.clean_pod_policy);
  if (policy.ttl_seconds_after_finished) {
    out["ttlSecondsAfterFinished"] = *policy.ttl_seconds_after_finished;
  }
  if (policy.active_deadline_seconds) {
    out["activeDeadlineSeconds"] = *policy.active_deadline_seconds;
  }
  if (policy.backoff_limit) out["backoffLimit"] = *policy.backoff_limit;
  if (policy.suspend) out["suspend"] = true;
  if (!policy.managed_by.empty()) out["managedBy"] = policy.managed_by;
  if (policy.scheduling_policy) {
    out["schedulingPolicy"] = EncodeScheduling(*policy.scheduling_policy);
  }
  return out;
}

Json EncodeReplica(const ReplicaSpec& replica) {
  JsonObject out;
  out["replicas"] = replica.replicas;
  out["restartPolicy"] = Name(replica.restart_policy);
  Json pod_template = replica.pod_template;
  AddPort(pod_template, replica.port);
  out["template"] = std::move(pod_template);
  return out;
}

}  // namespace

Json EncodeJob(const Job& job) {
  JsonObject replicas;
  for (const auto& [role, replica] : job.spec.replicas) {
    replicas[Name(role)] = EncodeReplica(replica);
  }
  JsonObject spec;
  spec["runPolicy"] = EncodeRunPolicy(job.spec.run_policy);
  if (job.spec.success_policy != SuccessPolicy::kDefault) {
    spec["successPolicy"] = Name(job.spec.success_policy);
  }
  if (job.spec.enable_dynamic_worker) spec["enableDynamicWorker"] = true;
  if (job.spec.tf_config_for_single_replica) spec["tfConfigForSingleReplica"] = true;
  spec["tfReplicaSpecs"] = std::move(replicas);
  return JsonObject{{"apiVersion", kApiVersion},
                    {"kind", kKind},
                    {"metadata", EncodeMetadata(job)},
                    {"spec", std::move(spec)}};
}

}  // namespace api
