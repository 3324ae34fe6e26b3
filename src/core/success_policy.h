// Who decides that a job has succeeded.
#pragma once

#include <set>

#include "api/tfjob.h"

namespace core {

// All these read of the status who has completed, and whether the job has data in shards.

// Whether this replica's end counts for the job's success: chiefs and masters where there are any,
// else workers (worker 0 alone unless successPolicy is AllWorkers or data is handed out in shards),
// and evaluators if the job waits for them.
bool Decides(const api::Job& job, const api::JobStatus& status, api::ReplicaId id);

// As training-operator v1.9: all chiefs and masters; without those worker 0, or all workers under
// AllWorkers. A job that has none of these roles never succeeds. Ours: where data is handed out in
// shards no worker is more than another, so that worker 0 alone does not end those that still have
// some; nor is one awaited that is `excused` (core/view.h).
bool IsSuccess(const api::Job& job, const api::JobStatus& status,
               const std::set<api::ReplicaId>& excused = {});

// The same, without the wait for evaluators.
bool TrainingIsDone(const api::Job& job, const api::JobStatus& status,
                    const std::set<api::ReplicaId>& excused = {});

// The roles whose running replicas make the job Running.
bool DrivesRunning(const api::Job& job, api::Role role);

}  // namespace core
