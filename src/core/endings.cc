#include "core/endings.h"

#include "core/view.h"

namespace core {

bool IsTakenIn(const api::Job& job, const api::JobStatus& published, const ReplicaState& ended) {
  if (!HasEnded(ended)) return false;
  if (api::IsTerminal(published) || published.completed.contains(ended.id)) return true;
  return !View{job, published, {}, {}}.IsCurrent(ended);
}

}  // namespace core
