// Who decides that a job has succeeded.
#pragma once

#include "api/tfjob.h"

namespace core {

// Whether this replica's end counts for the job's success: chiefs and masters where there are any,
// else workers (worker 0 alone unless successPolicy is AllWorkers), and evaluators if the job waits
// for them.
bool Decides(const api::Job& job, api::ReplicaId id);

// As training-operator v1.9: all chiefs and masters; without those worker 0, or all workers under
// AllWorkers. A job that has none of these roles never succeeds.
bool IsSuccess(const api::Job& job, const std::set<api::ReplicaId>& completed);

// The same, without the wait for evaluators.
bool TrainingIsDone(const api::Job& job, const std::set<api::ReplicaId>& completed);

// The roles whose running replicas make the job Running.
bool DrivesRunning(const api::Job& job, api::Role role);

}  // namespace core
