// A job and what was seen of it, with the questions that every rule asks of them.
//
// Holds references and lives for one pass.
#pragma once

#include <set>
#include <vector>

#include "api/tfjob.h"
#include "core/observed.h"
#include "core/restart_policy.h"

namespace core {

struct View {
  const api::Job& job;
  const api::JobStatus& status;  // as it will be published
  const std::vector<ReplicaState>& replicas;
  base::Time now;
  const DataView* data = nullptr;  // of an elastic job, where somebody hands it out

  bool IsGang() const { return ScopeOf(job) == api::RestartScope::kJob; }
  bool InRange(api::ReplicaId id) const { return id.index < api::ReplicasOf(job.spec, id.role); }
  // The unit that a replica belongs to, which says which attempt of it is wanted.
  const api::Unit& UnitOf(api::ReplicaId id) const;
  // Wanted, and of the attempt that is wanted. All others are merely in the way.
  bool IsCurrent(const ReplicaState& r) const;
  Meaning MeaningFor(const ReplicaState& r) const;
  // Workers beyond the minimum of an elastic job that have not begun when all of its data is done:
  // they may wait for a place for ever, and would find nothing to do.
  std::set<api::ReplicaId> Excused() const;
  // Only evaluators are still awaited: what happens to the others changes nothing any more.
  bool TrainingIsDone() const;
};

}  // namespace core
