#include "backend/cluster/troubles.h"

#include <fmt/core.h>

namespace backend::cluster {
namespace {

// A kubelet says within some seconds that a pod is gone, a busy one within some more.
constexpr base::Duration kOverdueAfter = std::chrono::seconds(60);

// A node that is lost never says it, and Kubernetes waits for ever: two pods of one name are worse
// than none, and only people can know what still runs there.
core::Event Overdue(const Pod& pod) {
  return {
      true, "PodNotGone",
      fmt::format("Pod {} was deleted, and node {} does not say that it is gone. If the node is "
                  "lost: kubectl delete pod {} -n {} --force",
                  pod.key.name, pod.node, pod.key.name, pod.key.name_space)};
}

}  // namespace

std::optional<base::Time> Troubles::Tell(const api::Job& job, const std::vector<Pod>& pods,
                                         base::Time now, Chronicle& chronicle) {
  std::optional<base::Time> again;
  for (const Pod& pod : pods) {
    if (!pod.trouble.empty()) {
      TellOnce(job, pod, {true, pod.trouble, pod.trouble_message}, chronicle);
    }
    if (!pod.replica.deleting || core::HasEnded(pod.replica)) continue;
    const base::Time overdue = pod.gone_by + kOverdueAfter;
    if (now >= overdue) {
      TellOnce(job, pod, Overdue(pod), chronicle);
    } else if (!again || overdue < *again) {
      again = overdue;
    }
  }
  return again;
}

void Troubles::TellTaken(const api::Job& job, const Pod& pod, Chronicle& chronicle) {
  TellOnce(job, pod,
           {true, "FailedCreatePod",
            fmt::format("Error creating: the pod {} is there and does not belong to this job any "
                        "more; delete it for the job to go on",
                        pod.key.name)},
           chronicle);
}

void Troubles::TellOnce(const api::Job& job, const Pod& pod, const core::Event& event,
                        Chronicle& chronicle) {
  if (told_.insert(pod.uid + event.reason).second) chronicle.Tell(job, event);
}

}  // namespace backend::cluster
