// Restart rules: what an ending means, who is restarted with whom, and how long to wait.
//
// Pure functions of a few values each; core/reconcile.cc puts them together.
#pragma once

#include <set>

#include "api/tfjob.h"
#include "core/observed.h"

namespace core {

enum class Meaning {
  kFine,        // exited 0 and may stay ended
  kUnclear,     // too early to tell: neither done nor failed (core/elastic.h)
  kDisruption,  // not the program's fault: restart, own counter, no limit
  kRetryable,   // restart, within backoffLimit
  kPermanent,   // the job has failed
};

// `may_end`: an exit with 0 is the end of this replica's work, also under Always.
Meaning MeaningOf(const Ending& ending, api::RestartPolicy policy, bool may_end);

// kAuto resolved: Replica if the job has parameter servers or is elastic, else Job.
api::RestartScope ScopeOf(const api::Job& job);

// Restarted together under scope Job: every role but the evaluator, which only reads checkpoints.
bool InGang(api::Role role);

// Who drives the training where there are parameter servers: chiefs and masters, without those
// worker 0. Without parameter servers nobody.
std::set<api::ReplicaId> Coordinators(const api::Job& job);

// Under scope Replica: who is restarted when this one failed. A lost parameter server takes the
// coordinator with it, because the variables it held are gone and TensorFlow's coordinator cannot
// go on (reference: it exits 1). Connections to a host that is silent do not break for some 15
// minutes, and until then everybody waits for its answers: a parameter server on such a host takes
// the workers along too, and a worker takes the coordinator.
std::set<api::ReplicaId> RestartedWith(const api::Job& job, api::ReplicaId failed,
                                       bool silent = false);

// The pause before the next attempt after `in_row` failures in a row: none, then 1 s, doubling to 5
// min.
base::Duration BackoffAfter(int32_t in_row);
inline constexpr base::Duration kLongestPause = std::chrono::minutes(5);

// An attempt that lasted this long starts the row afresh.
inline constexpr base::Duration kLasting = std::chrono::minutes(10);

// TensorFlow's preemption handler saves a checkpoint and exits with this status.
inline constexpr int32_t kPreemptedExit = 42;
// After this many such exits in a row without progress, the next one is a failure of the program.
// Their pauses add up to 8.5 minutes.
inline constexpr int32_t kMostPreemptionsInRow = 10;

}  // namespace core
