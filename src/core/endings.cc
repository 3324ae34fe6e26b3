#include "core/endings.h"

#include "core/view.h"

namespace core {

bool IsAwaited(const api::Job& job, const api::JobStatus& published, const ReplicaState& replica) {
  if (api::IsTerminal(published) || published.completed.contains(replica.id)) return false;
  // A suspended job may miss the endings of its old replicas: it asks no more of them than whether
  // they had finished when they were last seen, and its resumption begins new attempts.
  if (api::Has(published, "Suspended")) return false;
  return View{job, published, {}, {}}.IsCurrent(replica);
}

bool IsTakenIn(const api::Job& job, const api::JobStatus& published, const ReplicaState& ended) {
  return HasEnded(ended) && !IsAwaited(job, published, ended);
}

}  // namespace core
