#include "core/view.h"

#include "core/elastic.h"
#include "core/planted_bugs.h"
#include "core/success_policy.h"

namespace core {

const api::Unit& View::UnitOf(api::ReplicaId id) const {
  static const api::Unit kFresh;
  if (auto it = status.units.find(id); it != status.units.end()) return it->second;
  return InGang(id.role) ? status.gang : kFresh;
}

bool View::IsCurrent(const ReplicaState& r) const {
  return (InRange(r.id) || BUG(kKeepScaledAway)) &&
         (r.attempt == UnitOf(r.id).attempt || BUG(kAnyAttemptIsCurrent));
}

Meaning View::MeaningFor(const ReplicaState& r) const {
  // A member of a gang that has done its work is done, even under Always: to start it again would
  // break the gang in its last second.
  // Nor has one that has seen the end of the data anything left to do.
  const bool may_end = Decides(job, status, r.id) || (IsGang() && InGang(r.id.role)) ||
                       (status.shards && r.id.role == api::Role::kWorker);
  const Meaning meaning =
      MeaningOf(*r.ending, job.spec.replicas.at(r.id.role).restart_policy, may_end);
  if (meaning == Meaning::kFine) {
    switch (FinishOf(data, r)) {
      case Finish::kDone:
        return Meaning::kFine;
      case Finish::kWait:
        return Meaning::kUnclear;
      case Finish::kReplace:
        return Meaning::kDisruption;
    }
  }
  return IsElasticLoss(job, r) ? Meaning::kDisruption : meaning;
}

std::set<api::ReplicaId> View::Excused() const {
  std::set<api::ReplicaId> excused;
  if (!job.extensions.elastic || !data || !data->complete) return excused;
  const int32_t needed = BUG(kExcuseTheNeeded) ? 0 : job.extensions.elastic->min;
  for (int32_t i = needed; i < api::ReplicasOf(job.spec, api::Role::kWorker); ++i) {
    excused.insert({api::Role::kWorker, i});
  }
  for (const ReplicaState& r : replicas) {
    // One of an attempt before that is still leaving has work to end, too.
    if (r.phase != Phase::kPending && (IsCurrent(r) || !HasEnded(r))) excused.erase(r.id);
  }
  return excused;
}

bool View::TrainingIsDone() const { return core::TrainingIsDone(job, status, Excused()); }

}  // namespace core
