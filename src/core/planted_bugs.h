// Faults that can be switched on, one at a time, to see whether the simulator's checks find them.
//
// In a normal build BUG(x) is the constant false and nothing is left of it. The executable
// sim_with_bugs is compiled with TRAINYARD_PLANTED_BUGS and sets `planted_bug` at run time.
#pragma once

namespace core {

enum class Planted {
  kNone,
  kForgetIncarnation,     // a stop names no incarnation
  kCountTwice,            // a restart counts as two
  kCountNothing,          // a restart is not counted
  kNoBackoff,             // every restart comes at once
  kIgnoreNotBefore,       // the pause is in the status, but nobody waits for it
  kIgnoreCompleted,       // what is done runs again
  kRestartOneOfGang,      // only the failed worker of a gang is restarted
  kOneAboveLimit,         // one restart more than backoffLimit
  kForgetCounter,         // a resume clears the count of restarts
  kTwoGenerations,        // the new gang starts while the old one lives
  kDisruptionIsFailure,   // a preemption is judged by the restart policy
  kForgetSeen,            // who was there is not remembered
  kTerminalNotFinal,      // a failed job is judged again
  kFailedBeatsSucceeded,  // failures are judged before success
  kIgnoreSuspend,         // suspend does nothing
  kResumeSameAttempt,     // resume goes on with the attempt that was stopped
  kEvaluatorInGang,       // the evaluator is restarted with the workers
  kPsWithoutChief,        // a lost parameter server is restarted alone
  kNoDeadlineTimer,       // nobody looks again when the deadline passes
  kNoBackoffTimer,        // nobody looks again when the pause is over
  kNoTtlTimer,            // nobody looks again when the time to live is over
  kTtlAtOnce,             // the job is deleted when it ends
  kLatestIsCause,         // the last ending is taken for the first
  kNoGrace,               // a planned restart kills
  kReuseAttempt,          // a newcomer gets the attempt of one that was scaled away
  kLeaveLeftovers,        // what runs when the job is decided runs on
  kStartOneMore,          // one replica more than asked for
  kKeepScaledAway,        // what was scaled away runs on
  kScaleInPlace,          // a gang is scaled without a restart
  kRowNeverEnds,          // a lasting attempt does not reset the back-off
  kRemoveCurrent,         // endings are removed before their attempt is over
  kAnyAttemptIsCurrent,   // old incarnations are judged like new ones
  kAnyWorkerDecides,      // the first worker to end well ends the job
  kLimitIgnoresAlone,     // replicas restarted alone have no limit
  kPermanentIsRetryable,  // an error of the script is retried
  kVanishedIsFailure,     // one that vanished counts as failed
  kPublishLate,           // actions come before the status they rest on
  kPerformUnpublished,    // a failed publish is ignored
  kPublishSeldom,         // a status without events is not published
  kChiefRunsAgain,        // a lost parameter server restarts a chief that is done
  kMisledIsDone,          // one that took a cut line for the end of the data is done
  kMisledWaitsForEver,    // such a one is not done when the data is
  kElasticLossCounts,     // an elastic worker that was killed counts as failed
  kWorkerZeroEndsData,    // worker 0 ends a job whose others still have data
  kExcuseTheNeeded,       // a job ends without its minimum of workers once the data is done
  kJudgeWhileSuspended,   // failures are judged while the job is suspended
  kIgnoreSilence,         // peers of one whose node is silent fail the job
  kSuspendBeatsSuccess,   // a job that has finished is suspended, and runs again on resume
  kCount
};

#ifdef TRAINYARD_PLANTED_BUGS
inline int planted_bug = 0;
#define BUG(which) (::core::planted_bug == static_cast<int>(::core::Planted::which))
#else
#define BUG(which) false
#endif

}  // namespace core
