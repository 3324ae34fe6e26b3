#include "core/restart_policy.h"

#include <algorithm>

#include "core/planted_bugs.h"

namespace core {

using api::ReplicaId;
using api::Role;

Meaning MeaningOf(const Ending& ending, api::RestartPolicy policy, bool may_end) {
  const bool taken_away = !ending.disruption.empty() || ending.code == kPreemptedExit;
  if (taken_away && !BUG(kDisruptionIsFailure)) return Meaning::kDisruption;
  // Ended by us in a way that nobody asked for any more (a resume after a stop, say): not its
  // fault, and whatever its status, not the end of its work.
  if (ending.stopped) return Meaning::kDisruption;
  if (!ending.start_error.empty()) return Meaning::kPermanent;
  if (ending.code == 0) {
    // As a kubelet under Always: restarted. Not so where it would keep the job from ever
    // succeeding.
    return policy == api::RestartPolicy::kAlways && !may_end ? Meaning::kRetryable : Meaning::kFine;
  }
  switch (policy) {
    case api::RestartPolicy::kNever:
      return Meaning::kPermanent;
    case api::RestartPolicy::kOnFailure:
    case api::RestartPolicy::kAlways:
      return Meaning::kRetryable;
    case api::RestartPolicy::kExitCode:
      // As training-operator v1.9: 1-127 is the program's own error, 128 and above a kill.
      return ending.code >= 128 || BUG(kPermanentIsRetryable) ? Meaning::kRetryable
                                                              : Meaning::kPermanent;
  }
  return Meaning::kPermanent;
}

api::RestartScope ScopeOf(const api::Job& job) {
  if (job.extensions.restart_scope != api::RestartScope::kAuto) return job.extensions.restart_scope;
  const bool alone = api::ReplicasOf(job.spec, Role::kPs) > 0 || job.extensions.elastic ||
                     job.spec.enable_dynamic_worker;
  return alone ? api::RestartScope::kReplica : api::RestartScope::kJob;
}

bool InGang(Role role) { return role != Role::kEvaluator || BUG(kEvaluatorInGang); }

std::set<ReplicaId> Coordinators(const api::Job& job) {
  std::set<ReplicaId> out;
  if (api::ReplicasOf(job.spec, Role::kPs) == 0) return out;
  for (Role role : {Role::kChief, Role::kMaster}) {
    for (int32_t i = 0; i < api::ReplicasOf(job.spec, role); ++i) out.insert({role, i});
  }
  if (out.empty() && api::ReplicasOf(job.spec, Role::kWorker) > 0) out.insert({Role::kWorker, 0});
  return out;
}

std::set<ReplicaId> RestartedWith(const api::Job& job, ReplicaId failed, bool silent) {
  std::set<ReplicaId> out;
  const bool waited_for = failed.role == Role::kPs || (silent && InGang(failed.role));
  if (waited_for && !BUG(kPsWithoutChief)) out = Coordinators(job);
  if (failed.role == Role::kPs && silent) {
    for (int32_t i = 0; i < api::ReplicasOf(job.spec, Role::kWorker); ++i)
      out.insert({Role::kWorker, i});
  }
  out.insert(failed);
  return out;
}

base::Duration BackoffAfter(int32_t in_row) {
  if (in_row <= 1) return base::Duration(0);
  const int32_t doublings = std::min(in_row - 2, 20);
  return std::min(kLongestPause,
                  base::Duration(std::chrono::seconds(1)) * (int64_t{1} << doublings));
}

}  // namespace core
