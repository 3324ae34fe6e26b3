// One pass over a job, in the order: remember what ended well, is it a success, is it suspended, is
// it past a limit, has its shape changed, has anything failed, what is to be stopped, what started.
// Success comes first: work that is done is not done again because somebody changed, suspended or
// stopped the job a moment later.
//
// The status is changed first and the actions are derived from it at the end, from nothing but
// (status, observed). So whoever publishes the status and dies finds the same actions again in the
// next pass.
#include "core/reconcile.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/core.h>

#include "core/conditions.h"
#include "core/dialect.h"
#include "core/pass.h"
#include "core/planted_bugs.h"
#include "core/success_policy.h"
#include "core/verdict.h"
#include "core/wishes.h"

namespace core {

using api::ReplicaId;
using api::Role;
using base::Time;

Pass::Pass(const api::Job& job, const Observed& observed, const Policy& policy, Time now)
    : job_(job),
      policy_(policy),
      now_(now),
      data_(observed.data),
      replicas_(observed.replicas),
      status_(job.status) {
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
  TakeInData();
}

Decision Pass::Run() {
  if (status_.conditions.empty()) {
    Set("Created", "TFJobCreated", fmt::format("TFJob {} is created.", Name()));
  }
  if (!api::IsTerminal(status_) || (BUG(kTerminalNotFinal) && api::Has(status_, "Failed"))) {
    const bool suspend = job_.spec.run_policy.suspend && !BUG(kIgnoreSuspend);
    if (status_.shape.empty() && status_.attempt == 0) TakeUpAttempts();
    if (!suspend) FindMissed();
    ForgetOutOfRange();
    RememberEndings();
    if (BUG(kFailedBeatsSucceeded)) JudgeFailures();
    if (IsSuccess(job_, status_, view_.Excused()) && !(suspend && BUG(kSuspendBeatsSuccess))) {
      Succeed();
    } else if (suspend) {
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

void Pass::Set(std::string type, std::string reason, std::string message, bool value) {
  SetCondition(status_, std::move(type), value, std::move(reason), std::move(message), now_);
}

void Pass::Emit(bool warning, std::string reason, std::string message) {
  decision_.events.push_back({warning, std::move(reason), std::move(message)});
}

void Pass::LookAgain(Time time) {
  if (!decision_.look_again || time < *decision_.look_again) decision_.look_again = time;
}

void Pass::Judge() {
  if (api::Has(status_, "Suspended")) Resume();
  if (!status_.start_time) status_.start_time = std::chrono::floor<std::chrono::seconds>(now_);
  CorrectTimes();
  if (!PastDeadline() && !PastRestartsInPlace() && !DataIsLost()) {
    Reshape();
    JudgeFailures();
    if (!api::IsTerminal(status_)) CheckStartDeadline();
  }
  Count();
  if (!api::IsTerminal(status_) && !restarted_ && AnyDriverActive()) {
    Set("Running", "TFJobRunning", fmt::format("TFJob {} is running.", FullName()));
  }
}

// A time that lies further ahead than anything puts it was recorded under another clock, or before
// the clock was set back. Nothing waits for it.
void Pass::CorrectTimes() {
  status_.start_time =
      std::min(*status_.start_time, Time(std::chrono::floor<std::chrono::seconds>(now_)));
  const auto correct = [&](api::Unit& unit) {
    if (unit.not_before > now_ + kLongestPause) unit.not_before = now_;
  };
  correct(status_.gang);
  for (auto& [id, unit] : status_.units) correct(unit);
}

// Nothing of ours is remembered. Replicas of later attempts than the first tell that there was
// something, and another operator has written over it: they are the ones that are wanted.
void Pass::TakeUpAttempts() {
  for (const ReplicaState& r : replicas_) {
    if (r.attempt == 0 || r.deleting) continue;
    int32_t& wanted = status_.units[r.id].attempt;
    wanted = std::max(wanted, r.attempt);
    status_.attempt = std::max(status_.attempt, r.attempt);
  }
}

void Pass::FindMissed() {
  for (const ReplicaId id : status_.seen) {
    const bool there = std::ranges::any_of(replicas_, [&](const ReplicaState& r) {
      return r.id == id && r.attempt == view_.UnitOf(id).attempt;
    });
    if (!there && !status_.completed.contains(id)) decision_.missed.push_back(id);
  }
}

// ---- Suspend and resume

void Pass::Suspend() {
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

void Pass::Resume() {
  const std::string message = fmt::format("TFJob {} is resumed.", Name());
  Set("Suspended", "TFJobResumed", message, false);
  Emit(false, "TFJobResumed", message);
  status_.start_time = std::chrono::floor<std::chrono::seconds>(now_);
  if (BUG(kForgetCounter)) status_.restarts = 0;
  if (!BUG(kResumeSameAttempt)) RaiseAll();
}

// Everybody begins a new attempt because somebody wished so: counted as neither failure nor
// disruption.
void Pass::RaiseAll() {
  RaiseGang();
  for (int32_t i = 0; i < api::ReplicasOf(job_.spec, Role::kEvaluator); ++i) {
    RaiseAlone({Role::kEvaluator, i});
  }
}

void Pass::RaiseGang() {
  status_.gang.attempt = ++status_.attempt;
  status_.gang.not_before = now_;
  status_.gang.planned = true;
  std::erase_if(status_.units, [](const auto& entry) { return InGang(entry.first.role); });
  std::erase_if(status_.completed, [](ReplicaId id) { return InGang(id.role); });
  std::erase_if(status_.seen, [](ReplicaId id) { return InGang(id.role); });
}

api::Unit& Pass::RaiseAlone(ReplicaId id) {
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
void Pass::Reshape() {
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

void Pass::ForgetOutOfRange() {
  const auto forget = [&](ReplicaId id) { return !view_.InRange(id); };
  std::erase_if(status_.completed, forget);
  std::erase_if(status_.seen, forget);
  std::erase_if(status_.units, [&](const auto& entry) { return !view_.InRange(entry.first); });
}

// ---- Data

// What the end of a job means depends on whether it has data, also while its master is away.
void Pass::TakeInData() {
  if (!data_ || !data_->registered || api::IsTerminal(status_)) return;
  status_.shards = api::Shards{.todo = data_->todo,
                               .doing = data_->doing,
                               .done = data_->done,
                               .records_left = data_->records_left,
                               .records_total = data_->records_total,
                               .quarantined = data_->quarantined,
                               .complete = data_->complete};
}

bool Pass::DataIsLost() {
  if (!data_ || data_->broken.empty()) return false;
  Fail(fmt::format("TFJob {} has failed because its data cannot be handed out.", FullName()),
       {.result = "failed",
        .cause = "the data cannot be handed out: " + data_->broken,
        .advice = "trainyard events " + Name(),
        .exit_status = 1},
       true);
  return true;
}

// ---- Endings

void Pass::RememberEndings() {
  for (const ReplicaState& r : replicas_) {
    if (!view_.IsCurrent(r)) continue;
    if (!BUG(kForgetSeen)) status_.seen.insert(r.id);
    if (!HasEnded(r) || view_.MeaningFor(r) != Meaning::kFine) continue;
    if (status_.completed.insert(r.id).second) EmitExit(r.id, *r.ending);
  }
}

void Pass::EmitExit(ReplicaId id, const Ending& ending) {
  Emit(false, "ExitedWithCode",
       fmt::format("Pod: {}.{} exited with code {}", job_.metadata.name_space,
                   ReplicaName(job_, id), ending.code));
}

void Pass::Succeed() {
  const std::string message = fmt::format("TFJob {} successfully completed.", FullName());
  Set("Succeeded", "TFJobSucceeded", message);
  Emit(false, "TFJobSucceeded", message);
  status_.completion_time = std::chrono::floor<std::chrono::seconds>(now_);
  if (!status_.start_time) status_.start_time = status_.completion_time;
  Count();
  api::Job now_is = job_;
  now_is.status = status_;
  status_.verdict = SucceededBecause(now_is);
}

// ---- Counting

void Pass::Count() {
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

bool Pass::AnyDriverActive() const {
  return std::ranges::any_of(status_.replica_statuses, [&](const auto& entry) {
    return entry.second.active > 0 && DrivesRunning(job_, entry.first);
  });
}

// ----

Decision Reconcile(const api::Job& job, const Observed& observed, const Policy& policy, Time now) {
  const auto heeded = Heed(job, now);
  if (!heeded) return Pass(job, observed, policy, now).Run();
  api::Job changed = job;
  changed.status = heeded->status;
  if (WasStopped(changed.status) && !api::IsTerminal(job.status)) {
    Decision decision = Pass(job, observed, policy, now).Run();
    if (api::Has(decision.status, "Succeeded")) return decision;
  }
  Decision decision = Pass(changed, observed, policy, now).Run();
  decision.events.insert(decision.events.begin(), heeded->events.begin(), heeded->events.end());
  return decision;
}

}  // namespace core
