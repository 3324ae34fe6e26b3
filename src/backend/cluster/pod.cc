#include "backend/cluster/pod.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "api/tfjob.h"
#include "backend/cluster/objects.h"
#include "backend/cluster/stored.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "kube/api.h"

namespace backend::cluster {
namespace {

using base::At;
using base::Json;
using base::StringOr;

// Of one pod: those of all pods that a job may have still add up to a number.
constexpr int64_t kMostRestarts = 10'000;

template <typename Visit>
void ForEach(const Json& list, Visit visit) {
  if (!list.is_array()) return;
  for (const Json& item : list.get_array()) visit(item);
}

const Json& Named(const Json& list, std::string_view key, std::string_view name) {
  static const Json kNothing;
  const Json* found = nullptr;
  ForEach(list, [&](const Json& item) {
    if (!found && StringOr(item, key) == name) found = &item;
  });
  return found ? *found : kNothing;
}

std::optional<base::Time> TimeAt(const Json& object, std::string_view key) {
  return base::ParseTime(StringOr(object, key));
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view line : base::Split(text, '\n')) out.emplace_back(line);
  while (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

// Somebody or something took the pod away: Kubernetes says so in a condition, in the pod's reason,
// or by the deletion mark. Empty: nobody did.
std::string Disruption(const Json& metadata, const Json& status, bool exited,
                       std::optional<base::Time> finished) {
  const Json& target = Named(At(status, "conditions"), "type", "DisruptionTarget");
  if (StringOr(target, "status") == "True") {
    return fmt::format("{}: {}", StringOr(target, "reason"), StringOr(target, "message"));
  }
  if (const auto until = TimeAt(metadata, "deletionTimestamp")) {
    // What had failed before is no less a failure because somebody cleared it away since. Within
    // one second, which is as fine as these times are, the deletion explains it.
    const base::Time asked =
        *until - std::chrono::seconds(base::IntOr(metadata, "deletionGracePeriodSeconds", 0));
    if (!finished || *finished >= asked) return "its pod was deleted";
  }
  const std::string reason = StringOr(status, "reason");
  // Without an exit status the program did not end by itself: node lost or shut down, evicted, not
  // admitted by the node. But its own time limit is its author's.
  if (exited || reason == "DeadlineExceeded") return "";
  const std::string message = StringOr(status, "message");
  return (reason.empty() ? "its pod failed without an exit status" : reason) +
         (message.empty() ? "" : ": " + message);
}

core::Ending ReadEnding(const Json& metadata, const Json& status, const Json& container,
                        const Json& terminated, base::Time created) {
  core::Ending out;
  const bool exited = terminated.is_object();
  const int64_t code = base::IntOr(terminated, "exitCode", 137);
  out.code = static_cast<int32_t>(std::clamp<int64_t>(code, 0, 255));
  // Kubernetes tells a kill by 128 + signal, like a shell; a program may return such a number too.
  if (out.code > 128 && out.code <= 128 + 64) out.signal = out.code - 128;
  auto finished = TimeAt(terminated, "finishedAt");
  // A time before the pod was made is the zero time that a runtime reports when it knows none.
  if (finished && *finished < created) finished.reset();
  out.when = finished ? *finished : TimeAt(metadata, "deletionTimestamp").value_or(created);
  out.disruption = Disruption(metadata, status, exited, finished);
  if (StringOr(terminated, "reason") == "OOMKilled") {
    out.memory_limit_by = "the kubelet";
    const Json& limit = At(At(At(container, "resources"), "limits"), "memory");
    if (limit.is_string()) {
      out.memory_limit = base::ParseQuantity(std::string_view(limit.get_string())).value_or(0);
    }
  }
  const std::string reason = StringOr(terminated, "reason");
  const bool never_ran = reason == "ContainerCannotRun" || reason == "StartError";
  const std::string message = StringOr(terminated, "message");
  if (never_ran) {
    out.start_error = message.empty() ? reason : base::OneLine(message, 400);
  } else {
    out.last_lines = Lines(message);
  }
  return out;
}

// Every container of a pod.
bool HaveEnded(const Json& spec, const Json& status) {
  bool all = true;
  ForEach(At(spec, "containers"), [&](const Json& one) {
    const Json& its = Named(At(status, "containerStatuses"), "name", StringOr(one, "name"));
    all &= At(At(its, "state"), "terminated").is_object();
  });
  return all;
}

// Those that a kubelet has made of a container, and the one that it is about to make unless the pod
// has ended.
int32_t RestartsInPlace(const Json& container_status, bool ended) {
  const Json& state = At(container_status, "state");
  const bool waits = At(state, "waiting").is_object() &&
                     At(At(container_status, "lastState"), "terminated").is_object();
  const bool one_more = !ended && (waits || At(state, "terminated").is_object());
  const int64_t restarts = base::IntOr(container_status, "restartCount") + one_more;
  return static_cast<int32_t>(std::clamp<int64_t>(restarts, 0, kMostRestarts));
}

// Why a pod that has not started does not: a container that waits for something that is not
// coming, or no node for it.
void ReadTrouble(const Json& status, Pod& pod) {
  for (std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    ForEach(At(status, list), [&](const Json& one) {
      const Json& waiting = At(At(one, "state"), "waiting");
      const std::string reason = StringOr(waiting, "reason");
      if (!pod.trouble.empty() || reason.empty() || reason == "ContainerCreating" ||
          reason == "PodInitializing") {
        return;
      }
      pod.trouble = reason;
      pod.trouble_message =
          fmt::format("Error pod {} container {} waiting message: {}", pod.key.name,
                      StringOr(one, "name"), StringOr(waiting, "message"));
    });
  }
  const Json& scheduled = Named(At(status, "conditions"), "type", "PodScheduled");
  if (pod.trouble.empty() && StringOr(scheduled, "status") == "False") {
    pod.trouble = StringOr(scheduled, "reason");
    pod.trouble_message = fmt::format("Error pod {} condition message: {}", pod.key.name,
                                      StringOr(scheduled, "message"));
  }
}

// Once a node has been silent for about 40 s, Kubernetes sets the Ready condition of its pods to
// False and touches nothing else. A kubelet that answers sets ContainersReady to False as well, or
// says that readiness gates are not met.
void ReadSilence(const Json& status, Pod& pod) {
  const Json& conditions = At(status, "conditions");
  const Json& ready = Named(conditions, "type", "Ready");
  const Json& containers = Named(conditions, "type", "ContainersReady");
  if (StringOr(status, "phase") != "Running" || StringOr(ready, "status") != "False" ||
      StringOr(containers, "status") != "True" ||
      StringOr(ready, "reason") == "ReadinessGatesNotReady") {
    return;
  }
  pod.replica.silent = fmt::format("node {} does not answer", pod.node);
  if (core::HasEnded(pod.replica)) return;
  pod.trouble = "NodeNotReady";
  pod.trouble_message = fmt::format(
      "Error pod {} message: {}; nothing takes the place of the pod until the node is back or "
      "Kubernetes has let go of the pod",
      pod.key.name, pod.replica.silent);
}

}  // namespace

Pod ReadTroubled(const Json& object) {
  Pod out;
  out.key = {kube::Metadata(object, "namespace"), kube::Metadata(object, "name")};
  out.uid = kube::Metadata(object, "uid");
  ReadTrouble(At(object, "status"), out);
  return out;
}

bool WasTakenFrom(const api::Job& job, const Json& object) {
  const Json& metadata = At(object, "metadata");
  if (base::Find(metadata, "deletionTimestamp")) return false;
  const std::optional<Pod> pod = ReadPod(object);
  const bool labelled = pod && pod->job.name == job.metadata.name;
  const std::string controller = OwnerOf(metadata);
  return controller == job.metadata.uid ? !labelled : controller.empty() && labelled;
}

std::optional<Pod> ReadPod(const Json& object) {
  const Json& metadata = At(object, "metadata");
  const Json& labels = At(metadata, "labels");
  const Json& spec = At(object, "spec");
  const Json& status = At(object, "status");
  const auto id =
      api::ReplicaIdFrom(StringOr(labels, kTypeLabel) + "-" + StringOr(labels, kIndexLabel));
  const std::string name_space = StringOr(metadata, "namespace");
  Pod pod{.key = {name_space, StringOr(metadata, "name")},
          .job = {name_space, StringOr(labels, kJobLabel)},
          .uid = StringOr(metadata, "uid"),
          .version = kube::VersionOf(object),
          .owner = OwnerOf(metadata),
          .owner_kind = StringOr(ControllerOf(metadata), "kind")};
  if (StringOr(labels, kOperatorLabel) != kOperatorName) return std::nullopt;
  if (!id || pod.job.name.empty() || pod.key.name.empty() || pod.uid.empty()) return std::nullopt;
  pod.replica.incarnation = pod.uid;
  pod.replica.id = *id;
  const int64_t attempt = base::ParseInt(StringOr(labels, kAttemptLabel)).value_or(0);
  pod.replica.attempt = static_cast<int32_t>(std::clamp<int64_t>(attempt, 0, INT32_MAX));
  ForEach(At(metadata, "finalizers"), [&](const Json& one) {
    pod.held |= one.is_string() && std::string_view(one.get_string()) == kFinalizer;
  });
  pod.replica.deleting = base::Find(metadata, "deletionTimestamp") != nullptr;
  if (pod.replica.deleting) {
    pod.grace = base::IntOr(metadata, "deletionGracePeriodSeconds", 0);
    pod.gone_by = TimeAt(metadata, "deletionTimestamp").value_or(base::Time());
  }
  pod.node = StringOr(spec, "nodeName");
  pod.priority = base::IntOr(spec, "priority");

  const base::Time created = TimeAt(metadata, "creationTimestamp").value_or(base::Time());
  const std::string phase = StringOr(status, "phase");
  const Json& container = Named(At(spec, "containers"), "name", api::kContainerName);
  const Json& its = Named(At(status, "containerStatuses"), "name", api::kContainerName);
  const Json& state = At(its, "state");
  const Json& terminated = At(state, "terminated");
  pod.finished = phase == "Succeeded" || phase == "Failed";
  // Nothing will ever report its end: no node has it, or somebody deleted it by force, because its
  // node is lost, say. Without our finalizer it would be gone.
  const bool given_up = pod.replica.deleting && (pod.node.empty() || pod.grace == 0);
  // Ours are never restarted in place. Those of another operator may be, and one that has gone
  // well under OnFailure is not.
  const std::string policy = StringOr(spec, "restartPolicy");
  const bool for_good =
      policy == "Never" || (policy == "OnFailure" && base::IntOr(terminated, "exitCode", -1) == 0);
  const bool ended = pod.finished || given_up || (terminated.is_object() && for_good);
  if (policy != "Never") pod.replica.restarts_in_place = RestartsInPlace(its, ended);
  pod.closing = !pod.finished && !pod.replica.deleting && HaveEnded(spec, status);
  if (ended) {
    pod.replica.ending = ReadEnding(metadata, status, container, terminated, created);
    if (phase == "Succeeded" && !terminated.is_object()) pod.replica.ending->code = 0;
    // An exit with 0 after it was asked to go (a preemption handler that saved and left) is not
    // the end of its work.
    const auto asked = TimeAt(metadata, "deletionTimestamp");
    const bool sent_away =
        asked && pod.replica.ending->when > *asked - std::chrono::seconds(pod.grace);
    const bool well = pod.replica.ending->code == 0 && phase != "Failed" && !sent_away;
    if (well) {
      pod.replica.ending->signal = 0;
      // It had done its work before it was taken away.
      pod.replica.ending->disruption.clear();
    }
    pod.replica.phase = well ? core::Phase::kSucceeded : core::Phase::kFailed;
    pod.finished |= given_up;
  } else if (phase == "Running") {
    pod.replica.phase = core::Phase::kRunning;
  }
  const auto started =
      TimeAt(terminated.is_object() ? terminated : At(state, "running"), "startedAt");
  if (started && *started >= created) pod.replica.started = started;
  if (!ended) ReadTrouble(status, pod);
  // It is not known how a pod ended that was deleted by force.
  if (!ended || (given_up && !terminated.is_object())) ReadSilence(status, pod);
  return pod;
}

}  // namespace backend::cluster
