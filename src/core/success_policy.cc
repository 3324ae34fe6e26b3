#include "core/success_policy.h"

#include "core/planted_bugs.h"

namespace core {

using api::ReplicaId;
using api::ReplicasOf;
using api::Role;

namespace {

bool HasChief(const api::Job& job) {
  return ReplicasOf(job.spec, Role::kChief) > 0 || ReplicasOf(job.spec, Role::kMaster) > 0;
}

bool EveryWorkerDecides(const api::Job& job, const api::JobStatus& status) {
  if (job.extensions.elastic && status.shards && !BUG(kWorkerZeroEndsData)) return true;
  return job.spec.success_policy == api::SuccessPolicy::kAllWorkers;
}

bool AllCompleted(const api::Job& job, Role role, const std::set<ReplicaId>& completed,
                  const std::set<ReplicaId>& excused = {}) {
  for (int32_t i = 0; i < ReplicasOf(job.spec, role); ++i) {
    if (!completed.contains({role, i}) && !excused.contains({role, i})) return false;
  }
  return true;
}

}  // namespace

bool DrivesRunning(const api::Job& job, Role role) {
  if (HasChief(job)) return role == Role::kChief || role == Role::kMaster;
  return role == Role::kWorker;
}

bool Decides(const api::Job& job, const api::JobStatus& status, ReplicaId id) {
  if (id.role == Role::kEvaluator) return job.extensions.wait_for_evaluator;
  if (!DrivesRunning(job, id.role)) return false;
  if (id.role != Role::kWorker) return true;
  return id.index == 0 || EveryWorkerDecides(job, status);
}

bool IsSuccess(const api::Job& job, const api::JobStatus& status,
               const std::set<ReplicaId>& excused) {
  if (job.extensions.wait_for_evaluator && !AllCompleted(job, Role::kEvaluator, status.completed)) {
    return false;
  }
  return TrainingIsDone(job, status, excused);
}

bool TrainingIsDone(const api::Job& job, const api::JobStatus& status,
                    const std::set<ReplicaId>& excused) {
  const std::set<ReplicaId>& completed = status.completed;
  if (HasChief(job)) {
    return AllCompleted(job, Role::kChief, completed) &&
           AllCompleted(job, Role::kMaster, completed);
  }
  if (ReplicasOf(job.spec, Role::kWorker) == 0) return false;
  if (BUG(kAnyWorkerDecides) && !completed.empty()) return true;
  if (!EveryWorkerDecides(job, status) && completed.contains({Role::kWorker, 0})) return true;
  return AllCompleted(job, Role::kWorker, completed, excused);
}

}  // namespace core
