#include "cli/waiting.h"

#include <fmt/core.h>

#include "backend/cluster/objects.h"
#include "cli/cluster_place.h"
#include "cli/pod_troubles.h"
#include "cli/queue.h"
#include "kube/api.h"

namespace cli {

using backend::cluster::Pod;

namespace {

constexpr int kMostAsked = 10;

}  // namespace

std::string Waiting::Why(Store store, const api::Job& job) {
  const api::JobStatus& status = job.status;
  if (api::IsTerminal(status) || api::Has(status, "Running")) return "";
  if (const std::string queue = QueueOf(job); !queue.empty()) {
    const auto queued = asked_++ < kMostAsked ? WhyQueued(cluster_, job) : std::nullopt;
    return queued ? queued->what : fmt::format("queue {} has not admitted it", queue);
  }
  if (job.spec.run_policy.suspend) return "";
  if (status.conditions.empty() && store == Store::kTfJobs) {
    if (!operator_) operator_ = WhyNobodyKeeps(cluster_, store, job, again_).what;
    return *operator_;
  }
  if (status.conditions.empty())
    return asked_++ < kMostAsked ? WhyNobodyKeeps(cluster_, store, job, again_).what : "";
  Load();
  std::vector<const Pod*> pods;
  for (const Pod& pod : pods_[{job.metadata.name_space, job.metadata.name}]) pods.push_back(&pod);
  std::vector<Trouble> troubles = TroublesOf(pods, warnings_);
  if (troubles.empty() && !MissingOf(job, pods).empty() && asked_++ < kMostAsked) {
    auto events =
        EventsOf(cluster_, job.metadata.name_space, job.metadata.name, job.metadata.uid);
    if (events) troubles = Refusals(job, pods, *events);
  }
  return troubles.empty() ? "" : troubles.front().what;
}

void Waiting::Load() {
  if (std::exchange(loaded_, true)) return;
  auto list = cluster_.client().List(
      kube::Path("v1", "pods", name_space_),
      fmt::format("{}={}", backend::cluster::kOperatorLabel, backend::cluster::kOperatorName));
  bool asks = false;
  for (const base::Json& object : list ? *list : base::JsonArray()) {
    auto pod = backend::cluster::ReadPod(object);
    if (!pod) continue;
    asks |= NeedsWarnings({&*pod});
    pods_[{pod->job.name_space, pod->job.name}].push_back(*std::move(pod));
  }
  if (asks) warnings_ = WarningsAboutPods(cluster_, name_space_);
}

}  // namespace cli
