// Which endings the published status has taken in, so that the world may forget them.
#pragma once

#include "api/tfjob.h"
#include "core/observed.h"

namespace core {

// True once nothing that Reconcile will ever decide rests on seeing this ended incarnation again:
// it counted as done, its failure was answered with another attempt, the job is suspended, or over.
bool IsTakenIn(const api::Job& job, const api::JobStatus& published, const ReplicaState& ended);

}  // namespace core
