#include "backend/sim/cluster_checks.h"

#include <fmt/core.h>

#include "api/decode.h"
#include "backend/sim/api_object.h"

namespace backend::sim {
namespace {

using base::Json;

constexpr const char* kType = "training.kubeflow.org/replica-type";
constexpr const char* kIndex = "training.kubeflow.org/replica-index";
constexpr const char* kAttempt = "trainyard.dev/attempt";
constexpr const char* kOperator = "training.kubeflow.org/operator-name";
constexpr const char* kHeld = "trainyard.dev/observed";

std::string Label(const Json& object, const char* key) {
  const base::JsonObject& labels = ObjectAt(MetaOf(object), "labels");
  const Json* value = labels.if_contains(key);
  return value && value->is_string() ? std::string(value->as_string()) : "";
}

std::string OwnerOf(const Json& object) {
  const base::JsonArray& owners = ArrayAt(MetaOf(object), "ownerReferences");
  return owners.empty() ? "" : base::StringOr(owners[0], "uid");
}

}  // namespace

ClusterChecks::ClusterChecks(ClusterWorld& world) : world_(world) {
  world.server.Listen([this](const Change& change) {
    if (change.resource == &kTFJobs && change.after) SeeJob(*change.after);
    if (change.resource != &kPods) return;
    if (!change.before && !Label(*change.after, kOperator).empty()) SeeNewPod(*change.after);
    SeePods();
  });
}

void ClusterChecks::SeeJob(const Json& job) {
  const Json* stored = base::Find(job, "status");
  const api::JobStatus now = stored ? api::DecodeStatus(*stored) : api::JobStatus();
  const api::JobStatus was = std::exchange(last_[UidOf(job)], now);
  const auto has = [&](const char* type) { return api::Has(now, type); };
  const bool ended = has("Succeeded") || has("Failed");
  if (has("Succeeded") && has("Failed")) world_.Found("both Succeeded and Failed");
  if (ended && (has("Running") || has("Restarting") || has("Suspended"))) {
    world_.Found("ended, yet Running, Restarting or Suspended");
  }
  if (has("Running") && has("Restarting")) world_.Found("both Running and Restarting");
  if (has("Suspended") && (has("Running") || has("Restarting"))) {
    world_.Found("Suspended, yet Running or Restarting");
  }
  if (now.restarts < was.restarts || now.disruptions < was.disruptions ||
      now.attempt < was.attempt) {
    world_.Found("a counter went back");
  }
  if (api::IsTerminal(was) && was.conditions != now.conditions) {
    world_.Found("an ended job changed its mind");
  }
  const api::Decoded decoded = api::DecodeJobObject(job);
  const auto limit = decoded.job.spec.run_policy.backoff_limit;
  if (limit && now.restarts > was.restarts && now.restarts > *limit) {
    world_.Found("more restarts than backoffLimit");
  }
}

void ClusterChecks::SeeNewPod(const Json& pod) {
  const Object job = world_.Job();
  if (!job || UidOf(*job) != OwnerOf(pod)) return;  // the job may be gone by the time it arrives
  const api::JobStatus& status = last_[UidOf(*job)];
  if (api::IsTerminal(status)) world_.Found("a pod is made for a job that has ended");
  const auto id = api::ReplicaIdFrom(Label(pod, kType) + "-" + Label(pod, kIndex));
  if (id && status.completed.contains(*id)) {
    world_.Found("a pod is made for a replica that has done its work");
  }
  if (!HasFinalizer(pod, kHeld)) world_.Found("a pod is made that nothing holds");
}

// Replicas of a job without parameter servers that all take part in one collective.
void ClusterChecks::SeePods() {
  std::string attempt;
  for (const Object& pod : world_.Pods()) {
    const std::string type = Label(*pod, kType);
    if (type == "ps" || type == "chief") return;
    if (PhaseOf(*pod) != "Running" || IsDeleting(*pod)) continue;
    const std::string its = Label(*pod, kAttempt);
    if (!attempt.empty() && attempt != its) world_.Found("two generations of a gang run at once");
    attempt = its;
  }
}

void ClusterChecks::AtEnd() {
  const Object job = world_.Job();
  for (const Resource* resource : {&kPods, &kServices}) {
    for (const Object& object : world_.server.store().List(*resource, "")) {
      if (Label(*object, kOperator).empty()) continue;
      const std::string what = fmt::format("{} {}", resource->plural, NameOf(*object));
      if (!job || OwnerOf(*object) != UidOf(*job)) {
        world_.Found("left behind by a job that is gone: " + what);
      }
      if (HasFinalizer(*object, kHeld) && (HasEnded(*object) || IsDeleting(*object))) {
        world_.Found("held for ever: " + what);
      }
    }
  }
}

}  // namespace backend::sim
