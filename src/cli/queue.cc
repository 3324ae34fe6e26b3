#include "cli/queue.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/object.h"
#include "kube/api.h"

namespace cli {
namespace {

using base::ErrorKind;
using base::Json;
using base::Result;

constexpr const char* kQueueLabel = "kueue.x-k8s.io/queue-name";

bool IsOwnedBy(const Json& workload, const std::string& uid) {
  return std::ranges::any_of(
      ListAt(At(workload, "metadata"), "ownerReferences"),
      [&](const Json& owner) { return base::StringOr(owner, "uid") == uid; });
}

struct Condition {
  std::string reason, message;
};

std::optional<Condition> ConditionOf(const Json& workload, std::string_view type,
                                     std::string_view status) {
  for (const Json& condition : ListAt(At(workload, "status"), "conditions")) {
    if (base::StringOr(condition, "type") == type && base::StringOr(condition, "status") == status)
      return Condition{base::StringOr(condition, "reason"),
                       base::OneLine(base::StringOr(condition, "message"), 400)};
  }
  return std::nullopt;
}

constexpr const char* kCheck = "AdmissionCheck";

// The first check that keeps a workload with quota from being admitted.
std::optional<Condition> PendingCheckOf(const Json& workload) {
  for (const Json& check : ListAt(At(workload, "status"), "admissionChecks")) {
    const std::string state = base::StringOr(check, "state");
    if (state == "Ready") continue;
    const std::string message = base::OneLine(base::StringOr(check, "message"), 400);
    return Condition{kCheck,
                     fmt::format("admission check {} is {}{}", base::StringOr(check, "name"), state,
                                 message.empty() ? "" : ": " + message)};
  }
  return std::nullopt;
}

// Kueue's newest reason why the workload does not run: it has no quota, it was evicted and its pods
// have not ended yet, or a check has not passed.
Condition ReasonOf(const Json& workload) {
  for (const auto& found :
       {ConditionOf(workload, "QuotaReserved", "False"), ConditionOf(workload, "Evicted", "True"),
        PendingCheckOf(workload), ConditionOf(workload, "Admitted", "False")}) {
    if (found && !found->message.empty()) return *found;
  }
  return {};
}

// Returns what to do about a reason. Kueue uses Inadmissible for several of them.
std::string FixOf(const api::Job& job, const Json& workload, const Condition& reason) {
  const std::string queue = QueueOf(job), space = job.metadata.name_space;
  const std::string describe =
      fmt::format("kubectl -n {} describe workload {}", space, Metadata(workload, "name"));
  if (reason.message == fmt::format("LocalQueue {} doesn't exist", queue))
    return fmt::format(
        "kubectl -n {} get localqueues lists the queues, kubectl -n {} label tfjob {} "
        "{}=QUEUE --overwrite moves it to one",
        space, space, job.metadata.name, kQueueLabel);
  if (reason.reason == "Inadmissible") {
    const size_t inactive = reason.message.find(" is inactive");
    const bool of_cluster =
        reason.message.starts_with("ClusterQueue ") && inactive != std::string::npos;
    return fmt::format("it starts by itself once that is repaired: kubectl {}",
                       of_cluster
                           ? "describe clusterqueue " + reason.message.substr(13, inactive - 13)
                           : fmt::format("-n {} describe localqueue {}", space, queue));
  }
  if (reason.message.find("> maximum capacity") != std::string::npos)
    return "request less, or have the quota of the queue raised: " + describe;
  if (reason.reason == kCheck) return "it starts by itself when the check has passed: " + describe;
  return "it starts by itself when the queue has room: " + describe;
}

std::string SetActive(const api::Job& job, const Json& workload, bool active) {
  return fmt::format(
      "kubectl -n {} patch workload {} --type merge -p '{{\"spec\":{{\"active\":{}}}}}'",
      job.metadata.name_space, Metadata(workload, "name"), active);
}

// The workload may be one that this user has no right to read.
Trouble TroubleOf(const api::Job& job, const Result<Json>& workload) {
  if (workload) return QueuedFor(job, *workload);
  return {fmt::format("queue {} has not admitted it", QueueOf(job)),
          "it starts by itself when the queue has room"};
}

}  // namespace

std::string QueueNameOf(const api::Job& job) {
  const auto label = job.metadata.labels.find(kQueueLabel);
  return label == job.metadata.labels.end() ? "" : label->second;
}

std::string QueueOf(const api::Job& job) {
  const bool held = job.spec.run_policy.suspend && !api::IsTerminal(job.status);
  return held ? QueueNameOf(job) : "";
}

Trouble QueuedFor(const api::Job& job, const Json& workload) {
  const std::string queue = QueueOf(job);
  if (!workload.is_object())
    return {
        fmt::format("queue {} has not taken it up", queue),
        fmt::format("kubectl -n {} get localqueue {} tells whether the queue exists; Kueue must "
                    "run and manage TFJobs",
                    job.metadata.name_space, queue)};
  const auto evicted = ConditionOf(workload, "Evicted", "True");
  if (!base::BoolOr(At(workload, "spec"), "active", true)) {
    // "The workload is deactivated due to exceeding the maximum execution time"
    const size_t cause = evicted ? evicted->message.find(" due to ") : std::string::npos;
    return {fmt::format("it was taken out of queue {}{}", queue,
                        cause == std::string::npos ? "" : evicted->message.substr(cause)),
            SetActive(job, workload, true) + " puts it back"};
  }
  if (ConditionOf(workload, "Admitted", "True") && !evicted)
    return {fmt::format("queue {} has admitted it, and Kueue is starting it", queue), ""};
  const Condition reason = ReasonOf(workload);
  const bool preempted = ConditionOf(workload, "Preempted", "True").has_value();
  return {
      fmt::format("queue {} {}{}", queue,
                  preempted ? "preempted it and has not admitted it again" : "has not admitted it",
                  reason.message.empty() ? "" : ": " + reason.message),
      FixOf(job, workload, reason)};
}

Result<Json> WorkloadOf(Cluster& cluster, const api::Job& job) {
  for (const char* version : {"kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"}) {
    auto list = cluster.client().List(kube::Path(version, "workloads", job.metadata.name_space));
    if (!list && list.error().kind() == ErrorKind::kForbidden)
      return std::unexpected(std::move(list).error());
    if (!list) continue;  // this version is not known
    for (const Json& workload : *list) {
      if (IsOwnedBy(workload, job.metadata.uid)) return workload;
    }
    break;
  }
  return Json();
}

std::optional<Trouble> WhyQueued(Cluster& cluster, const api::Job& job) {
  if (QueueOf(job).empty()) return std::nullopt;
  return TroubleOf(job, WorkloadOf(cluster, job));
}

std::string WhyNotResumed(Cluster& cluster, const api::Job& job, const std::string& again) {
  const std::string queue = QueueNameOf(job), name = job.metadata.name;
  const bool ended = api::IsTerminal(job.status);
  if (queue.empty() || (!ended && QueueOf(job).empty())) return "";
  const auto workload = WorkloadOf(cluster, job);
  const bool known = workload && workload->is_object();
  if (ended) {
    if (workload && !known) return "";
    return fmt::format(
        "{} has ended and left queue {}, and resume would bypass it: trainyard delete {}{}, then "
        "submit it again",
        name, queue, name, again);
  }
  const Trouble queued = TroubleOf(job, workload);
  return fmt::format(
      "{} waits in queue {}, and resume would bypass it: {}{}; to run it without the queue: "
      "{}kubectl -n {} label tfjob {} {}- && trainyard resume {}{}",
      name, queue, queued.what, queued.fix.empty() ? "" : "; " + queued.fix,
      // While the workload is active, Kueue keeps quota for it.
      known ? SetActive(job, *workload, false) + " && " : "", job.metadata.name_space, name,
      kQueueLabel, name, again);
}

std::string WhyNotSuspended(Cluster& cluster, const api::Job& job) {
  const std::string queue = QueueNameOf(job);
  if (queue.empty()) return "";
  const auto workload = WorkloadOf(cluster, job);
  if (!workload || !workload->is_object()) return "";
  return fmt::format("queue {} would start {} again: {} holds it back", queue, job.metadata.name,
                     SetActive(job, *workload, false));
}

}  // namespace cli
