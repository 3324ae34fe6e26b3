#include "core/endings.h"

#include "core/view.h"

namespace core {

bool IsTakenIn(const api::Job& job, const api::JobStatus& published, const ReplicaState& ended) {
  if (!HasEnded(ended)) return false;
  // A suspended job resumes with other attempts, whatever became of these.
  if (api::IsTerminal(published) || api::Has(published, "Suspended")) return true;
  if (published.completed.contains(ended.id)) return true;
  return !View{job, published, {}, {}}.IsCurrent(ended);
}

}  // namespace core
