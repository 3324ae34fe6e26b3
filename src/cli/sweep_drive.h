// Runs the trials of a sweep: starts them as slots come free, reads their metric, stops what is
// pruned, and remembers what was decided.
//
// One thread. Nothing is acted on before it is in the log: a sweep that is killed at any point is
// gone on with by `trainyard sweep resume`, which finds the jobs of its trials, running or ended,
// and reads them again from their beginning.
#pragma once

#include "cli/place.h"
#include "cli/sweep_store.h"

namespace cli {

// The store is locked by the caller. Returns the exit status of `trainyard sweep`.
int DriveSweep(SweepStore& store, sweep::Study study, Place& place, bool local, bool json);

}  // namespace cli
