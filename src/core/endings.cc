#include "core/endings.h"

#include "core/view.h"

namespace core {

bool IsTakenIn(const api::Job& job, const api::JobStatus& published, const ReplicaState& ended) {
  if (!HasEnded(ended)) return false;
  if (api::IsTerminal(published) || published.completed.contains(ended.id)) return true;
  // A suspended job asks nothing of its old replicas, and its resumption begins new attempts.
  if (api::Has(published, "Suspended")) return true;
  return !View{job, published, {}, {}}.IsCurrent(ended);
}

}  // namespace core
