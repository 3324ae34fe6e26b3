// The part of a pass that judges: what has failed or taken too long, and whether that is answered
// with a restart or with the end of the job.
#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "core/pass.h"
#include "core/planted_bugs.h"
#include "core/success_policy.h"
#include "core/verdict.h"

namespace core {
namespace {

constexpr int64_t kLongestDeadline = int64_t{100} * 365 * 24 * 3600;
// Statuses travel whole with every write.
constexpr size_t kIncidentsKept = 16;

// Reads after a replica's name.
constexpr std::string_view kMisled = "ended before the data did, without knowing it";

// Disruptions have words, or a status of their own.
bool IsMisled(const Failure& failure) {
  return failure.meaning == Meaning::kDisruption && failure.ending.code == 0 &&
         !failure.ending.stopped && failure.ending.disruption.empty();
}

// The program says that it was preempted, and nothing else does: no member of the group was taken
// away.
bool IsOwnPreemption(const Failure& cause, const std::vector<Failure>& failures) {
  return cause.meaning == Meaning::kDisruption && cause.ending.code == kPreemptedExit &&
         !cause.ending.stopped && std::ranges::all_of(failures, [](const Failure& f) {
           return f.ending.disruption.empty();
         });
}

// Grows as the training gets on, as far as this world can tell.
int64_t ProgressOf(const api::JobStatus& status) {
  return status.shards ? status.shards->done : status.progress.step.value_or(0);
}

}  // namespace

using api::ReplicaId;
using api::Role;
using base::Duration;
using base::Time;

void Pass::Fail(const std::string& message, api::Verdict verdict, bool warning) {
  Set("Failed", "TFJobFailed", message);
  Emit(warning, "TFJobFailed", message);
  status_.completion_time = std::chrono::floor<std::chrono::seconds>(now_);
  status_.verdict = std::move(verdict);
}

void Pass::JudgeFailures() {
  std::vector<Failure> all = FailuresIn(view_);
  std::vector<Failure> gang, alone;
  for (Failure& f : all) {
    const bool together = view_.IsGang() && InGang(f.id.role) && !BUG(kRestartOneOfGang);
    (together ? gang : alone).push_back(std::move(f));
  }
  if (!gang.empty()) {
    const Cause cause = FirstCause(view_, gang, policy_);
    if (cause.failure) {
      JudgeOne(*cause.failure, gang, std::nullopt);
    } else {
      LookAgain(cause.settled);
    }
  }
  // A silent member explains the ends of all who blame a peer, a lost parameter server that of its
  // coordinator, and never the other way round.
  std::ranges::sort(alone, {}, [](const Failure& f) {
    return std::tuple(!f.silent, f.id.role != Role::kPs, f.ending.when, f.id);
  });
  std::set<ReplicaId> explained;
  for (const Failure& f : alone) {
    if (api::IsTerminal(status_)) return;
    if (explained.contains(f.id)) continue;
    if (const auto until = WaitsUntil(view_, f, policy_)) {
      LookAgain(*until);
      continue;
    }
    std::set<ReplicaId> group = RestartedWith(job_, f.id, f.silent);
    for (const Failure& other : alone) {
      if (f.silent && other.blames_a_peer) group.insert(other.id);
    }
    if (!BUG(kChiefRunsAgain)) {
      std::erase_if(group, [&](ReplicaId id) { return status_.completed.contains(id); });
    }
    std::vector<Failure> members;
    for (const Failure& other : alone) {
      if (group.contains(other.id)) members.push_back(other);
    }
    if (f.meaning != Meaning::kPermanent) explained.insert(group.begin(), group.end());
    JudgeOne(f, members, group);
  }
}

// Answers one cause with a restart of its group (nothing: the gang), or with the end of the job.
void Pass::JudgeOne(const Failure& cause, const std::vector<Failure>& failures,
                    const std::optional<std::set<ReplicaId>>& group) {
  for (const Failure& f : failures) EmitExit(f.id, f.ending);
  if (IsMisled(cause)) {
    Emit(true, "WorkerMisled", fmt::format("{} {}: replaced", api::Spoken(cause.id), kMisled));
  }
  Record(cause, failures);
  const std::string type(api::Name(cause.id.role));
  if (cause.meaning == Meaning::kPermanent) {
    const bool exit_code =
        job_.spec.replicas.at(cause.id.role).restart_policy == api::RestartPolicy::kExitCode;
    const auto count = std::ranges::count_if(replicas_, [&](const ReplicaState& r) {
      return r.id.role == cause.id.role && r.phase == Phase::kFailed && view_.IsCurrent(r);
    });
    Fail(exit_code
             ? fmt::format("job \"{}\" is failing because \"{}\" replica(s) failed.", Name(), type)
             : fmt::format("TFJob {} has failed because {} {} replica(s) failed.", FullName(),
                           count, type),
         FailedBecause(job_, cause.id, cause.ending, policy_.in_pods), exit_code);
    return;
  }
  const bool preempted = IsOwnPreemption(cause, failures);
  if (preempted && PreemptionsInRow(cause) > kMostPreemptionsInRow) {
    Fail(fmt::format("TFJob {} has failed because {} exited with status {} again and again.",
                     FullName(), api::Spoken(cause.id), kPreemptedExit),
         FailedByLimit(fmt::format("{} {} ({} means preempted) {} times in a row without progress",
                                   api::Spoken(cause.id), WhatHappened(cause.ending),
                                   kPreemptedExit, kMostPreemptionsInRow + 1),
                       Advice(job_, cause.id, cause.ending, policy_.in_pods)));
    return;
  }
  const bool failure = cause.meaning == Meaning::kRetryable;
  const auto limit = job_.spec.run_policy.backoff_limit;
  const int32_t in_place = RestartsInPlace();
  if (failure && limit && status_.restarts + in_place >= *limit + BUG(kOneAboveLimit) &&
      !(group && BUG(kLimitIgnoresAlone))) {
    Fail(
        fmt::format("Job {} has failed because it has reached the specified backoff limit", Name()),
        FailedByLimit(
            fmt::format("{} {}{}", api::Spoken(cause.id), WhatHappened(cause.ending),
                        *limit == 0
                            ? ", and backoffLimit allows no restart"
                            : fmt::format(", after {} restart{}, as many as backoffLimit allows",
                                          *limit, *limit == 1 ? "" : "s")),
            Advice(job_, cause.id, cause.ending, policy_.in_pods)));
    return;
  }
  (failure ? status_.restarts : status_.disruptions) += BUG(kCountTwice) ? 2 : !BUG(kCountNothing);
  restarted_ = true;
  if (group) {
    const int32_t attempt = status_.attempt + 1;
    for (ReplicaId id : *group) {
      status_.attempt = attempt - 1;  // one number for the whole group
      api::Unit& unit = RaiseAlone(id);
      unit.planned = false;
      if (id == cause.id) PauseFor(unit, cause, preempted);
    }
    const Time not_before = status_.units[cause.id].not_before;
    for (ReplicaId id : *group) status_.units[id].not_before = not_before;
  } else {
    RaiseGang();
    status_.gang.planned = false;
    PauseFor(status_.gang, cause, preempted);
  }
  // Those of replicas that make way now would be forgotten with them.
  status_.restarts += in_place - RestartsInPlace();
  const std::string message =
      fmt::format("job {} is restarting because {} replica(s) failed.", Name(), type);
  Set("Restarting", "TFJobRestarting", message);
  Emit(true, "TFJobRestarting", message);
}

// Of the cause's unit, this one included.
int32_t Pass::PreemptionsInRow(const Failure& cause) const {
  const api::Unit& unit = view_.UnitOf(cause.id);
  const bool lasted = cause.started && cause.ending.when - *cause.started >= kLasting;
  return lasted || ProgressOf(status_) > unit.preempted_at ? 1 : unit.preemptions_in_row + 1;
}

void Pass::PauseFor(api::Unit& unit, const Failure& cause, bool preempted) {
  if (cause.started && cause.ending.when - *cause.started >= kLasting && !BUG(kRowNeverEnds)) {
    unit.failures_in_row = unit.disruptions_in_row = 0;
  }
  unit.preemptions_in_row = preempted ? PreemptionsInRow(cause) : 0;
  unit.preempted_at = preempted ? ProgressOf(status_) : 0;
  int32_t& row =
      cause.meaning == Meaning::kRetryable ? unit.failures_in_row : unit.disruptions_in_row;
  unit.not_before = now_ + (BUG(kNoBackoff) ? Duration(0) : BackoffAfter(++row));
}

void Pass::Record(const Failure& cause, const std::vector<Failure>& failures) {
  api::Incident incident{
      .replica = cause.id,
      .attempt = view_.UnitOf(cause.id).attempt,
      .when = cause.ending.when,
      .what = IsMisled(cause) ? std::string(kMisled) : WhatHappened(cause.ending),
      .line = TellingLine(cause.ending.last_lines),
      .disruption = cause.meaning == Meaning::kDisruption};
  for (const Failure& f : failures) {
    if (f.id != cause.id) incident.consequences.push_back(f.id);
  }
  status_.incidents.push_back(std::move(incident));
  if (status_.incidents.size() > kIncidentsKept) status_.incidents.erase(status_.incidents.begin());
}

// ---- Restarts that we did not make

int32_t Pass::RestartsInPlace() const {
  int32_t sum = 0;
  for (const ReplicaState& r : replicas_) {
    if (view_.IsCurrent(r)) sum += r.restarts_in_place;
  }
  return sum;
}

// They are made already: the limit ends the job once there are more than it allows.
bool Pass::PastRestartsInPlace() {
  const auto limit = job_.spec.run_policy.backoff_limit;
  const int32_t in_place = RestartsInPlace();
  if (!limit || in_place == 0 || status_.restarts + in_place <= *limit) return false;
  Fail(fmt::format("Job {} has failed because it has reached the specified backoff limit", Name()),
       FailedByLimit(fmt::format("restarted {} times, {} of them in place, and backoffLimit is {}",
                                 status_.restarts + in_place, in_place, *limit),
                     "trainyard logs " + Name()));
  return true;
}

// ---- Limits of time

bool Pass::PastDeadline() {
  const auto seconds = job_.spec.run_policy.active_deadline_seconds;
  if (!seconds) return false;
  // "For ever" is written as the largest number there is.
  const Time deadline =
      *status_.start_time + std::chrono::seconds(std::min(*seconds, kLongestDeadline));
  if (now_ < deadline) {
    if (!BUG(kNoDeadlineTimer)) LookAgain(deadline);
    return false;
  }
  Fail(
      fmt::format("Job {} has failed because it was active longer than specified deadline", Name()),
      FailedByLimit(fmt::format("still running after {} s, its activeDeadlineSeconds", *seconds),
                    "allow more time with --deadline, or go on from the last checkpoint: "
                    "trainyard resume " +
                        Name()));
  return true;
}

void Pass::CheckStartDeadline() {
  if (!job_.extensions.start_deadline) return;
  std::set<ReplicaId> up = status_.completed;
  for (const ReplicaState& r : replicas_) {
    if (view_.IsCurrent(r) && r.phase != Phase::kPending) up.insert(r.id);
  }
  std::vector<std::string> missing;
  Time since = *status_.start_time;
  for (const auto& [role, spec] : job_.spec.replicas) {
    for (int32_t i = 0; i < spec.replicas; ++i) {
      if (up.contains({role, i}) || !MustStartInTime({role, i})) continue;
      missing.push_back(api::Spoken({role, i}));
      since = std::max(since, view_.UnitOf({role, i}).not_before);
    }
  }
  if (missing.empty()) return;
  const Time deadline = since + *job_.extensions.start_deadline;
  if (now_ < deadline) return LookAgain(deadline);
  Fail(fmt::format("Job {} has failed because not all replicas started in time", Name()),
       FailedByLimit(
           "not all replicas were up within the start deadline; missing: " + missing.front() +
               (missing.size() > 1 ? fmt::format(" and {} more", missing.size() - 1) : ""),
           "trainyard why " + Name()));
}

// A replica that was taken away may have to wait long for its place: that never ends a job. An
// elastic job makes do with its minimum, and training without an evaluator.
bool Pass::MustStartInTime(ReplicaId id) const {
  if (view_.UnitOf(id).disruptions_in_row > 0) return false;
  if (id.role == Role::kEvaluator) return Decides(job_, status_, id);
  if (view_.TrainingIsDone()) return false;
  if (id.role != Role::kWorker) return true;
  if (job_.extensions.elastic) return id.index < job_.extensions.elastic->min;
  return !job_.spec.enable_dynamic_worker;
}

}  // namespace core
