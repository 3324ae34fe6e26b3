#include "core/services.h"

#include <algorithm>

namespace core {

ServiceWish WishFor(const api::Job& job, const api::JobStatus& status, const Observed& observed,
                    api::ReplicaId id) {
  if (id.index >= api::ReplicasOf(job.spec, id.role)) {
    // A worker of an elastic job may finish first, and is spoken to until then.
    const bool finishes =
        job.extensions.elastic && std::ranges::any_of(observed.replicas, [&](const auto& r) {
          return r.id == id && !HasEnded(r);
        });
    return finishes ? ServiceWish::kKeep : ServiceWish::kRemove;
  }
  if (!api::IsTerminal(status)) {
    return job.spec.run_policy.suspend ? ServiceWish::kRemove : ServiceWish::kMake;
  }
  switch (job.spec.run_policy.clean_pod_policy) {
    case api::CleanPodPolicy::kNone:
      return ServiceWish::kKeep;
    case api::CleanPodPolicy::kAll:
      return ServiceWish::kRemove;
    case api::CleanPodPolicy::kRunning:
      // One that still runs is on its way out. Its service goes after it: it may have ended by
      // itself a moment ago, and stays then.
      return std::ranges::any_of(observed.replicas,
                                 [&](const ReplicaState& r) { return r.id == id && !r.deleting; })
                 ? ServiceWish::kKeep
                 : ServiceWish::kRemove;
  }
  return ServiceWish::kKeep;
}

}  // namespace core
