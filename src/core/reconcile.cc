// One pass over a job, in the order: remember what ended well, is it a success, is it past a limit,
// has its shape changed, has anything failed, what is to be stopped, what started. Success comes
// first: work that is done is not done again because somebody changed the job a moment later.
//
// The status is changed first and the actions are derived from it at the end, from nothing but
// (status, observed). So whoever publishes the status and dies finds the same actions again in the
// next pass.
#include "core/reconcile.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "core/conditions.h"
#include "core/failures.h"
#include "core/planted_bugs.h"
#include "core/restart_policy.h"
#include "core/success_policy.h"
#include "core/verdict.h"
#include "core/view.h"
#include "core/wishes.h"

namespace core {
namespace {

using api::ReplicaId;
using api::Role;
using base::Duration;
using base::Time;

// How long workers of a collective may take to exit by themselves once worker 0 is done: they end
// within the same second, and a kill would put an error into logs of a job that went well.
constexpr Duration kLinger = std::chrono::seconds(10);
constexpr int64_t kLongestDeadline = int64_t{100} * 365 * 24 * 3600;
// Statuses travel whole with every write.
constexpr size_t kIncidentsKept = 16;

class Pass {
 public:
  Pass(const api::Job& job, const Observed& observed, const Policy& policy, Time now)
      : job_(job), policy_(policy), now_(now), replicas_(observed.replicas), status_(job.status) {
    std::ranges::sort(replicas_, {}, [](const ReplicaState& r) {
      return std::tuple(r.id, r.attempt, r.incarnation);
    });
    // Silence (nobody reads the logs yet) does not undo what was known. Not-a-number equals
    // nothing, itself included: with it in the status every pass would publish again.
    if (observed.progress != api::Progress()) status_.progress = observed.progress;
    std::erase_if(status_.progress.metrics, [](const auto& m) { return std::isnan(m.second); });
    if (status_.progress.percent && std::isnan(*status_.progress.percent)) {
      status_.progress.percent.reset();
    }
  }

  Decision Run() {
    if (status_.conditions.empty()) {
      Set("Created", "TFJobCreated", fmt::format("TFJob {} is created.", Name()));
    }
    if (!api::IsTerminal(status_) || (BUG(kTerminalNotFinal) && api::Has(status_, "Failed"))) {
      if (job_.spec.run_policy.suspend && !BUG(kIgnoreSuspend)) {
        Suspend();
      } else {
        Judge();
      }
    }
    if (api::IsTerminal(status_)) {
      CleanUp();
    } else if (!job_.spec.run_policy.suspend || BUG(kIgnoreSuspend)) {
      Act();
    }
    decision_.status = std::move(status_);
    return std::move(decision_);
  }

 private:
  const std::string& Name() const { return job_.metadata.name; }
  std::string FullName() const { return job_.metadata.name_space + "/" + Name(); }

  void Set(std::string type, std::string reason, std::string message, bool value = true) {
    SetCondition(status_, std::move(type), value, std::move(reason), std::move(message), now_);
  }

  void Emit(bool warning, std::string reason, std::string message) {
    decision_.events.push_back({warning, std::move(reason), std::move(message)});
  }

  void LookAgain(Time time) {
    if (!decision_.look_again || time < *decision_.look_again) decision_.look_again = time;
  }

  void Judge() {
    if (status_.shape.empty() && status_.attempt == 0) TakeUpAttempts();
    FindMissed();
    if (api::Has(status_, "Suspended")) Resume();
    if (!status_.start_time) status_.start_time = std::chrono::floor<std::chrono::seconds>(now_);
    ForgetOutOfRange();
    RememberEndings();
    if (BUG(kFailedBeatsSucceeded)) JudgeFailures();
    if (IsSuccess(job_, status_.completed)) {
      Succeed();
    } else if (!PastDeadline() && !PastRestartsInPlace()) {
      Reshape();
      JudgeFailures();
      if (!api::IsTerminal(status_)) CheckStartDeadline();
    }
    Count();
    if (!api::IsTerminal(status_) && !restarted_ && AnyDriverActive()) {
      Set("Running", "TFJobRunning", fmt::format("TFJob {} is running.", FullName()));
    }
  }

  // Nothing of ours is remembered. Replicas of later attempts than the first tell that there was
  // something, and another operator has written over it: they are the ones that are wanted.
  void TakeUpAttempts() {
    for (const ReplicaState& r : replicas_) {
      if (r.attempt == 0 || r.deleting) continue;
      int32_t& wanted = status_.units[r.id].attempt;
      wanted = std::max(wanted, r.attempt);
      status_.attempt = std::max(status_.attempt, r.attempt);
    }
  }

  void FindMissed() {
    for (const ReplicaId id : status_.seen) {
      const bool there = std::ranges::any_of(replicas_, [&](const ReplicaState& r) {
        return r.id == id && r.attempt == view_.UnitOf(id).attempt;
      });
      if (!there && !status_.completed.contains(id)) decision_.missed.push_back(id);
    }
  }

  // ---- Suspend and resume

  void Suspend() {
    for (const ReplicaState& r : replicas_) {
      if (HasEnded(r)) {
        decision_.actions.push_back(Remove{r.id, r.incarnation});
      } else {
        AskToEnd(r, true);
      }
    }
    for (auto& [role, counts] : status_.replica_statuses) counts.active = 0;
    if (BUG(kJudgeWhileSuspended)) JudgeFailures();
    if (api::Has(status_, "Suspended")) return;
    const std::string message = fmt::format("TFJob {} is suspended.", Name());
    if (api::FindCondition(status_, "Running") || api::FindCondition(status_, "Restarting")) {
      Set("Running", "TFJobSuspended", message, false);
    }
    Set("Suspended", "TFJobSuspended", message);
    Emit(false, "TFJobSuspended", message);
  }

  void Resume() {
    const std::string message = fmt::format("TFJob {} is resumed.", Name());
    Set("Suspended", "TFJobResumed", message, false);
    Emit(false, "TFJobResumed", message);
    status_.start_time = std::chrono::floor<std::chrono::seconds>(now_);
    if (BUG(kForgetCounter)) status_.restarts = 0;
    if (!BUG(kResumeSameAttempt)) RaiseAll();
  }

  // Everybody begins a new attempt because somebody wished so: counted as neither failure nor
  // disruption.
  void RaiseAll() {
    RaiseGang();
    for (int32_t i = 0; i < api::ReplicasOf(job_.spec, Role::kEvaluator); ++i) {
      RaiseAlone({Role::kEvaluator, i});
    }
  }

  void RaiseGang() {
    status_.gang.attempt = ++status_.attempt;
    status_.gang.not_before = now_;
    status_.gang.planned = true;
    std::erase_if(status_.units, [](const auto& entry) { return InGang(entry.first.role); });
    std::erase_if(status_.completed, [](ReplicaId id) { return InGang(id.role); });
    std::erase_if(status_.seen, [](ReplicaId id) { return InGang(id.role); });
  }

  api::Unit& RaiseAlone(ReplicaId id) {
    api::Unit unit = view_.UnitOf(id);
    unit.attempt = ++status_.attempt;
    unit.not_before = now_;
    unit.planned = true;
    status_.completed.erase(id);
    status_.seen.erase(id);
    return status_.units[id] = unit;
  }

  // ---- Scaling

  // The replicas of a collective, and a coordinator, know each other by TF_CONFIG, which is fixed
  // when a process starts. So a change of shape is one planned restart of those who must learn of
  // it.
  void Reshape() {
    std::map<Role, int32_t> shape;
    for (const auto& [role, spec] : job_.spec.replicas) shape[role] = spec.replicas;
    const std::map<Role, int32_t> old = std::exchange(status_.shape, shape);
    if (old.empty() || old == shape) return;
    const auto before = [&](Role role) {
      const auto it = old.find(role);
      return it == old.end() ? 0 : it->second;
    };
    // A newcomer may bear the name of one that was scaled away and still lingers: another attempt
    // tells them apart.
    for (const auto& [role, count] : shape) {
      for (int32_t i = before(role); i < count && !BUG(kReuseAttempt); ++i) RaiseAlone({role, i});
    }
    const bool must_learn = std::ranges::any_of(api::kRoles, [&](Role role) {
      return InGang(role) && before(role) != api::ReplicasOf(job_.spec, role);
    });
    if (!must_learn || BUG(kScaleInPlace) || job_.extensions.elastic ||
        job_.spec.enable_dynamic_worker || view_.TrainingIsDone()) {
      return;
    }
    if (view_.IsGang() || before(Role::kPs) != api::ReplicasOf(job_.spec, Role::kPs)) {
      RaiseGang();
    } else {
      for (ReplicaId id : Coordinators(job_)) {
        if (!status_.completed.contains(id)) RaiseAlone(id);
      }
    }
    Emit(false, "TFJobScaled", fmt::format("TFJob {} is restarted in its new shape.", Name()));
  }

  void ForgetOutOfRange() {
    const auto forget = [&](ReplicaId id) { return !view_.InRange(id); };
    std::erase_if(status_.completed, forget);
    std::erase_if(status_.seen, forget);
    std::erase_if(status_.units, [&](const auto& entry) { return !view_.InRange(entry.first); });
  }

  // ---- Endings

  void RememberEndings() {
    for (const ReplicaState& r : replicas_) {
      if (!view_.IsCurrent(r)) continue;
      if (!BUG(kForgetSeen)) status_.seen.insert(r.id);
      if (!HasEnded(r) || view_.MeaningFor(r) != Meaning::kFine) continue;
      if (status_.completed.insert(r.id).second) EmitExit(r.id, *r.ending);
    }
  }

  void EmitExit(ReplicaId id, const Ending& ending) {
    Emit(false, "ExitedWithCode",
         fmt::format("Pod: {}.{}-{} exited with code {}", job_.metadata.name_space, Name(),
                     api::ToString(id), ending.code));
  }

  void Succeed() {
    const std::string message = fmt::format("TFJob {} successfully completed.", FullName());
    Set("Succeeded", "TFJobSucceeded", message);
    Emit(false, "TFJobSucceeded", message);
    status_.completion_time = std::chrono::floor<std::chrono::seconds>(now_);
    api::Job now_is = job_;
    now_is.status = status_;
    status_.verdict = SucceededBecause(now_is);
  }

  void Fail(const std::string& message, api::Verdict verdict, bool warning = false) {
    Set("Failed", "TFJobFailed", message);
    Emit(warning, "TFJobFailed", message);
    status_.completion_time = std::chrono::floor<std::chrono::seconds>(now_);
    status_.verdict = std::move(verdict);
  }

  void JudgeFailures() {
    std::vector<Failure> all = FailuresIn(view_);
    std::vector<Failure> gang, alone;
    for (Failure& f : all) {
      const bool together = view_.IsGang() && InGang(f.id.role) && !BUG(kRestartOneOfGang);
      (together ? gang : alone).push_back(std::move(f));
    }
    if (!gang.empty()) {
      const Cause cause = FirstCause(view_, gang, policy_.clock_resolution);
      if (cause.failure) {
        JudgeOne(*cause.failure, gang, std::nullopt);
      } else {
        LookAgain(cause.settled);
      }
    }
    // A lost parameter server explains its coordinator's end, never the other way round.
    std::ranges::sort(alone, {}, [](const Failure& f) {
      return std::tuple(f.id.role != Role::kPs, f.ending.when, f.id);
    });
    std::set<ReplicaId> explained;
    for (const Failure& f : alone) {
      if (api::IsTerminal(status_)) return;
      if (explained.contains(f.id)) continue;
      std::set<ReplicaId> group = RestartedWith(job_, f.id);
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
  void JudgeOne(const Failure& cause, const std::vector<Failure>& failures,
                const std::optional<std::set<ReplicaId>>& group) {
    for (const Failure& f : failures) EmitExit(f.id, f.ending);
    Record(cause, failures);
    const std::string type(api::Name(cause.id.role));
    if (cause.meaning == Meaning::kPermanent) {
      const bool exit_code =
          job_.spec.replicas.at(cause.id.role).restart_policy == api::RestartPolicy::kExitCode;
      const auto count = std::ranges::count_if(replicas_, [&](const ReplicaState& r) {
        return r.id.role == cause.id.role && r.phase == Phase::kFailed && view_.IsCurrent(r);
      });
      Fail(exit_code ? fmt::format("job \"{}\" is failing because \"{}\" replica(s) failed.",
                                   Name(), type)
                     : fmt::format("TFJob {} has failed because {} {} replica(s) failed.",
                                   FullName(), count, type),
           FailedBecause(job_, cause.id, cause.ending), exit_code);
      return;
    }
    const bool failure = cause.meaning == Meaning::kRetryable;
    const auto limit = job_.spec.run_policy.backoff_limit;
    const int32_t in_place = RestartsInPlace();
    if (failure && limit && status_.restarts + in_place >= *limit + BUG(kOneAboveLimit) &&
        !(group && BUG(kLimitIgnoresAlone))) {
      Fail(fmt::format("Job {} has failed because it has reached the specified backoff limit",
                       Name()),
           FailedByLimit(
               fmt::format("{} {}{}", api::Spoken(cause.id), WhatHappened(cause.ending),
                           *limit == 0
                               ? ", and backoffLimit allows no restart"
                               : fmt::format(", after {} restart{}, as many as backoffLimit allows",
                                             *limit, *limit == 1 ? "" : "s")),
               Advice(job_, cause.id, cause.ending)));
      return;
    }
    (failure ? status_.restarts : status_.disruptions) +=
        BUG(kCountTwice) ? 2 : !BUG(kCountNothing);
    restarted_ = true;
    if (group) {
      const int32_t attempt = status_.attempt + 1;
      for (ReplicaId id : *group) {
        status_.attempt = attempt - 1;  // one number for the whole group
        api::Unit& unit = RaiseAlone(id);
        unit.planned = false;
        if (id == cause.id) PauseFor(unit, cause);
      }
      const Time not_before = status_.units[cause.id].not_before;
      for (ReplicaId id : *group) status_.units[id].not_before = not_before;
    } else {
      RaiseGang();
      status_.gang.planned = false;
      PauseFor(status_.gang, cause);
    }
    // Those of replicas that make way now would be forgotten with them.
    status_.restarts += in_place - RestartsInPlace();
    const std::string message =
        fmt::format("job {} is restarting because {} replica(s) failed.", Name(), type);
    Set("Restarting", "TFJobRestarting", message);
    Emit(true, "TFJobRestarting", message);
  }

  void PauseFor(api::Unit& unit, const Failure& cause) {
    if (cause.started && cause.ending.when - *cause.started >= kLasting && !BUG(kRowNeverEnds)) {
      unit.failures_in_row = unit.disruptions_in_row = 0;
    }
    int32_t& row =
        cause.meaning == Meaning::kRetryable ? unit.failures_in_row : unit.disruptions_in_row;
    unit.not_before = now_ + (BUG(kNoBackoff) ? Duration(0) : BackoffAfter(++row));
  }

  void Record(const Failure& cause, const std::vector<Failure>& failures) {
    api::Incident incident{.replica = cause.id,
                           .attempt = view_.UnitOf(cause.id).attempt,
                           .when = cause.ending.when,
                           .what = WhatHappened(cause.ending),
                           .line = TellingLine(cause.ending.last_lines),
                           .disruption = cause.meaning == Meaning::kDisruption};
    for (const Failure& f : failures) {
      if (f.id != cause.id) incident.consequences.push_back(f.id);
    }
    status_.incidents.push_back(std::move(incident));
    if (status_.incidents.size() > kIncidentsKept)
      status_.incidents.erase(status_.incidents.begin());
  }

  // ---- Restarts that we did not make

  int32_t RestartsInPlace() const {
    int32_t sum = 0;
    for (const ReplicaState& r : replicas_) {
      if (view_.IsCurrent(r)) sum += r.restarts_in_place;
    }
    return sum;
  }

  // They are made already: the limit ends the job once there are more than it allows.
  bool PastRestartsInPlace() {
    const auto limit = job_.spec.run_policy.backoff_limit;
    const int32_t in_place = RestartsInPlace();
    if (!limit || in_place == 0 || status_.restarts + in_place <= *limit) return false;
    Fail(
        fmt::format("Job {} has failed because it has reached the specified backoff limit", Name()),
        FailedByLimit(fmt::format("restarted {} times, {} of them in place, and backoffLimit is {}",
                                  status_.restarts + in_place, in_place, *limit),
                      "trainyard logs " + Name()));
    return true;
  }

  // ---- Limits of time

  bool PastDeadline() {
    const auto seconds = job_.spec.run_policy.active_deadline_seconds;
    if (!seconds) return false;
    // "For ever" is written as the largest number there is.
    const Time deadline =
        *status_.start_time + std::chrono::seconds(std::min(*seconds, kLongestDeadline));
    if (now_ < deadline) {
      if (!BUG(kNoDeadlineTimer)) LookAgain(deadline);
      return false;
    }
    Fail(fmt::format("Job {} has failed because it was active longer than specified deadline",
                     Name()),
         FailedByLimit(fmt::format("still running after {} s, its activeDeadlineSeconds", *seconds),
                       "allow more time with --deadline, or go on from the last checkpoint: "
                       "trainyard resume " +
                           Name()));
    return true;
  }

  void CheckStartDeadline() {
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
  bool MustStartInTime(ReplicaId id) const {
    if (view_.UnitOf(id).disruptions_in_row > 0) return false;
    if (id.role == Role::kEvaluator) return Decides(job_, id);
    if (view_.TrainingIsDone()) return false;
    if (id.role != Role::kWorker) return true;
    if (job_.extensions.elastic) return id.index < job_.extensions.elastic->min;
    return !job_.spec.enable_dynamic_worker;
  }

  // ---- Counting

  void Count() {
    status_.replica_statuses.clear();
    for (const auto& [role, spec] : job_.spec.replicas) status_.replica_statuses[role] = {};
    for (ReplicaId id : status_.completed) status_.replica_statuses[id.role].succeeded += 1;
    for (const ReplicaState& r : replicas_) {
      if (!view_.IsCurrent(r) || status_.completed.contains(r.id)) continue;
      api::ReplicaStatus& counts = status_.replica_statuses[r.id.role];
      if (r.phase == Phase::kRunning && !r.deleting) counts.active += 1;
      if (r.phase == Phase::kFailed) counts.failed += 1;
    }
  }

  bool AnyDriverActive() const {
    return std::ranges::any_of(status_.replica_statuses, [&](const auto& entry) {
      return entry.second.active > 0 && DrivesRunning(job_, entry.first);
    });
  }

  // ---- Actions

  void Act() {
    bool old_gang_lives = false;
    std::set<ReplicaId> occupied, wait;
    for (const ReplicaState& r : replicas_) {
      occupied.insert(r.id);
      if (view_.IsCurrent(r) && !(BUG(kRemoveCurrent) && HasEnded(r))) continue;
      if (HasEnded(r)) {
        decision_.actions.push_back(Remove{r.id, r.incarnation});
        continue;
      }
      old_gang_lives |= InGang(r.id.role) &&
                        (view_.IsGang() || (view_.InRange(r.id) && !status_.units.contains(r.id)));
      // A coordinator that meets a parameter server on its way out loses it, and fails.
      if (r.id.role == Role::kPs && view_.InRange(r.id)) wait = Coordinators(job_);
      // The survivors of a broken gang have nothing left to save and may hang in a collective.
      AskToEnd(r, !view_.InRange(r.id) || (view_.UnitOf(r.id).planned && !BUG(kNoGrace)));
    }
    for (const auto& [role, spec] : job_.spec.replicas) {
      // At most one generation of a gang lives: a newcomer that meets a member of the old one
      // hangs.
      if (InGang(role) && ((old_gang_lives && !BUG(kTwoGenerations)) || view_.TrainingIsDone()))
        continue;
      for (int32_t i = 0; i < spec.replicas + BUG(kStartOneMore); ++i) {
        const ReplicaId id{role, i};
        if (occupied.contains(id) || wait.contains(id)) continue;
        if (status_.completed.contains(id) && !BUG(kIgnoreCompleted)) continue;
        const api::Unit& unit = view_.UnitOf(id);
        // A pause longer than we ever make was written under another clock.
        if (unit.not_before > now_ && unit.not_before <= now_ + kLongestPause &&
            !BUG(kIgnoreNotBefore)) {
          if (!BUG(kNoBackoffTimer)) LookAgain(unit.not_before);
        } else {
          decision_.actions.push_back(Start{id, unit.attempt});
        }
      }
    }
  }

  // One that is ending in its own time is not asked again.
  void AskToEnd(const ReplicaState& r, bool graceful) {
    if (!(graceful && r.deleting)) {
      decision_.actions.push_back(
          Stop{r.id, BUG(kForgetIncarnation) ? "" : r.incarnation, graceful});
    }
  }

  void CleanUp() {
    const bool succeeded = api::Has(status_, "Succeeded");
    if (!status_.completion_time) {  // ended under another operator, say
      status_.completion_time = std::chrono::floor<std::chrono::seconds>(now_);
    }
    if (succeeded) {
      for (auto& [role, counts] : status_.replica_statuses) {
        counts.succeeded += std::exchange(counts.active, 0);
      }
    }
    const api::CleanPodPolicy clean = job_.spec.run_policy.clean_pod_policy;
    const bool none_outlives = policy_.end_leftovers || job_.extensions.end_leftovers;
    const bool stop = (none_outlives && !BUG(kLeaveLeftovers)) ||
                      clean != api::CleanPodPolicy::kNone || WasStopped(status_);
    const bool broken =
        view_.IsGang() && std::ranges::any_of(replicas_, [&](const ReplicaState& r) {
          return view_.IsCurrent(r) && InGang(r.id.role) && r.phase == Phase::kFailed &&
                 !r.ending->stopped;
        });
    bool leftovers = false;
    for (const ReplicaState& r : replicas_) {
      if (HasEnded(r)) {
        if (clean == api::CleanPodPolicy::kAll)
          decision_.actions.push_back(Remove{r.id, r.incarnation});
        continue;
      }
      if (!stop) continue;
      leftovers = none_outlives;
      if (succeeded && view_.IsGang() && r.id.role != Role::kEvaluator && none_outlives) {
        const Time patience = *status_.completion_time + kLinger;
        if (now_ < patience) {
          LookAgain(patience);
          continue;
        }
      }
      AskToEnd(r, succeeded || !broken || !InGang(r.id.role));
    }
    const auto ttl = job_.spec.run_policy.ttl_seconds_after_finished;
    if (!ttl) return;
    const Time expiry = *status_.completion_time + std::chrono::seconds(*ttl);
    if (now_ < expiry && BUG(kNoTtlTimer)) return;
    if (now_ < expiry && !BUG(kTtlAtOnce)) return LookAgain(expiry);
    if (!leftovers) decision_.actions.push_back(DeleteJob{});
  }

  const api::Job& job_;
  const Policy& policy_;
  const Time now_;
  std::vector<ReplicaState> replicas_;  // sorted, so that nothing depends on the order they came in
  api::JobStatus status_;               // what will be published
  const View view_{job_, status_, replicas_, now_};
  bool restarted_ = false;
  Decision decision_;
};

}  // namespace

Decision Reconcile(const api::Job& job, const Observed& observed, const Policy& policy, Time now) {
  const auto heeded = Heed(job, now);
  if (!heeded) return Pass(job, observed, policy, now).Run();
  api::Job changed = job;
  changed.status = heeded->status;
  Decision decision = Pass(changed, observed, policy, now).Run();
  decision.events.insert(decision.events.begin(), heeded->events.begin(), heeded->events.end());
  return decision;
}

}  // namespace core
