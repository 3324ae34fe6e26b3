#include "cli/queue.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/object.h"
#include "kube/api.h"

namespace cli {
namespace {

using base::Json;

constexpr const char* kQueueLabel = "kueue.x-k8s.io/queue-name";

bool IsOwnedBy(const Json& workload, const std::string& uid) {
  return std::ranges::any_of(
      ListAt(At(workload, "metadata"), "ownerReferences"),
      [&](const Json& owner) { return base::StringOr(owner, "uid") == uid; });
}

// Kueue's newest reason why the workload does not run: it was evicted, or has no quota yet.
std::string ReasonOf(const Json& workload) {
  for (const auto& [type, status] : {std::pair("QuotaReserved", "False"),
                                     std::pair("Admitted", "False"), std::pair("Evicted", "True")}) {
    for (const Json& condition : ListAt(At(workload, "status"), "conditions")) {
      const std::string message = base::StringOr(condition, "message");
      if (base::StringOr(condition, "type") == type && !message.empty() &&
          base::StringOr(condition, "status") == status)
        return base::OneLine(message, 400);
    }
  }
  return "";
}

}  // namespace

std::string QueueOf(const api::Job& job) {
  const auto label = job.metadata.labels.find(kQueueLabel);
  const bool held = job.spec.run_policy.suspend && !api::IsTerminal(job.status);
  return held && label != job.metadata.labels.end() ? label->second : "";
}

Trouble QueuedFor(const api::Job& job, const Json& workload) {
  const std::string queue = QueueOf(job), name_space = job.metadata.name_space;
  if (!workload.is_object())
    return {fmt::format("queue {} has not taken it up", queue),
            fmt::format("kubectl -n {} get localqueue {} tells whether the queue exists; Kueue must "
                        "run and manage TFJobs",
                        name_space, queue)};
  const std::string name = Metadata(workload, "name");
  if (!base::BoolOr(At(workload, "spec"), "active", true))
    return {fmt::format("it was taken out of queue {}", queue),
            fmt::format("kubectl -n {} patch workload {} --type merge -p "
                        "'{{\"spec\":{{\"active\":true}}}}' puts it back",
                        name_space, name)};
  const std::string reason = ReasonOf(workload);
  return {fmt::format("queue {} has not admitted it{}", queue,
                      reason.empty() ? "" : ": " + reason),
          fmt::format("it starts by itself when the queue has room: kubectl -n {} describe workload "
                      "{}",
                      name_space, name)};
}

std::optional<Trouble> WhyQueued(Cluster& cluster, const api::Job& job) {
  if (QueueOf(job).empty()) return std::nullopt;
  for (const char* version : {"kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"}) {
    const auto list =
        cluster.client().List(kube::Path(version, "workloads", job.metadata.name_space));
    if (!list && list.error().kind() == base::ErrorKind::kForbidden)
      return Trouble{fmt::format("queue {} has not admitted it", QueueOf(job)),
                     "it starts by itself when the queue has room"};
    if (!list) continue;  // this version is not known
    for (const Json& workload : *list) {
      if (IsOwnedBy(workload, job.metadata.uid)) return QueuedFor(job, workload);
    }
    break;
  }
  return QueuedFor(job, Json());
}

}  // namespace cli
