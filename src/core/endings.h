// Which endings the published status has taken in, so that the world may forget them.
#pragma once

#include "api/tfjob.h"
#include "core/observed.h"

namespace core {

// Whether its ending, when it comes, is one that decisions rest on. Otherwise it may end unseen.
bool IsAwaited(const api::Job& job, const api::JobStatus& published, const ReplicaState& replica);

// True once nothing that Reconcile will ever decide rests on seeing this ended incarnation again:
// it counted as done, its failure was answered with another attempt, or the job is over or
// suspended.
bool IsTakenIn(const api::Job& job, const api::JobStatus& published, const ReplicaState& ended);

}  // namespace core
