#include <algorithm>

#include "backend/sim/checks.h"

namespace backend::sim {

using api::ReplicaId;
using api::Role;
using base::Time;

// ---- What is done ----

void Checks::Performing(const core::Action& action) {
  if (const auto* start = std::get_if<core::Start>(&action)) return CheckStart(*start);
  if (const auto* stop = std::get_if<core::Stop>(&action)) return CheckStop(*stop);
  if (const auto* remove = std::get_if<core::Remove>(&action)) return CheckRemove(*remove);
  const api::JobStatus& status = world_.stored.status;
  const auto ttl = world_.stored.spec.run_policy.ttl_seconds_after_finished;
  if (!api::IsTerminal(status) || !ttl ||
      world_.ControllerTime() < *status.completion_time + std::chrono::seconds(*ttl)) {
    Found("the job is deleted before its time");
  }
  if (policy_.end_leftovers && world_.AnyLive()) Found("the job is deleted while replicas live");
}

void Checks::CheckStart(const core::Start& start) {
  const api::JobStatus& status = world_.stored.status;
  const std::string name = api::ToString(start.id);
  if (api::IsTerminal(status)) Found(name + " is started after the job has ended");
  if (api::Has(status, "Suspended")) Found(name + " is started while the job is suspended");
  if (status.completed.contains(start.id)) Found(name + " is started though it is completed");
  if (!InRange(start.id)) Found(name + " is started though nobody asked for it");
  const api::Unit unit = UnitIn(status, start.id);
  if (unit.attempt != start.attempt)
    Found(name + " is started in an attempt that is not published");
  if (unit.not_before > world_.ControllerTime())
    Found(name + " is started before its pause is over");
  for (const Incarnation& one : world_.all) {
    const core::ReplicaState& r = one.state;
    if (one.live && r.id == start.id && r.attempt != start.attempt) {
      Found(name + " is started while its old incarnation lives");
    }
    if (one.live && InGang(r.id) && InGang(start.id) && r.attempt != start.attempt) {
      Found("two generations of a gang live");
    }
    if (!one.live && r.id == start.id && r.attempt == start.attempt && one.observed) {
      Found(name + " is started twice in one attempt");
    }
  }
}

void Checks::CheckStop(const core::Stop& stop) {
  const api::JobStatus& status = world_.stored.status;
  const auto it = std::ranges::find_if(world_.all, [&](const Incarnation& one) {
    return one.state.incarnation == stop.incarnation;
  });
  if (it == world_.all.end()) return Found("a stop names no incarnation");
  const api::Unit unit = UnitIn(status, stop.id);
  const bool wanted = InRange(stop.id) && it->state.attempt == unit.attempt;
  const bool ending = api::IsTerminal(status) || api::Has(status, "Suspended");
  if (wanted && !ending) Found(it->state.incarnation + " is stopped though it is wanted");
  if (!stop.graceful && !ending && unit.planned && InRange(stop.id)) {
    Found(it->state.incarnation + " gets no grace in a planned restart");
  }
}

void Checks::CheckRemove(const core::Remove& remove) {
  const api::JobStatus& status = world_.stored.status;
  for (const Incarnation& one : world_.all) {
    if (one.state.incarnation != remove.incarnation) continue;
    if (one.live) Found(remove.incarnation + " is removed while it lives");
    const bool ending = api::IsTerminal(status) || api::Has(status, "Suspended");
    if (!ending && InRange(remove.id) && one.state.attempt == UnitIn(status, remove.id).attempt) {
      Found(remove.incarnation + " is removed while its attempt is wanted");
    }
  }
}

// ---- From turn to turn ----

void Checks::ByHand() {
  planned_allowed_ = true;
  ForgetRows(world_.stored.status);
}

void Checks::TurnOver(const controller::Turn& turn, bool undisturbed) {
  if (turn.error || !undisturbed) return;
  for (Incarnation& one : world_.all) one.observed |= !one.gone;
  const api::Job& job = world_.stored;
  const api::JobStatus& status = job.status;
  const Time now = world_.ControllerTime();
  const auto expect = [&](Time time, const char* what) {
    if (!turn.look_again || *turn.look_again > time) {
      Found(std::string("nobody looks again when ") + what);
    }
  };
  if (api::IsTerminal(status)) {
    const auto ttl = job.spec.run_policy.ttl_seconds_after_finished;
    if (!ttl || world_.deleted) return;
    const Time expiry = *status.completion_time + std::chrono::seconds(*ttl);
    if (now < expiry) expect(expiry, "the time to live is over");
    return;
  }
  if (job.spec.run_policy.suspend) {
    if (!api::Has(status, "Suspended")) Found("suspend is not heeded");
    return;
  }
  if (!status.start_time) return Found("a turn is over, and the job has no start time");
  if (const auto seconds = job.spec.run_policy.active_deadline_seconds) {
    const Time deadline = *status.start_time + std::chrono::seconds(*seconds);
    if (now >= deadline) Found("the deadline has passed, and nothing is done");
    expect(deadline, "the deadline passes");
  }
  bool old_lives = false;
  std::set<ReplicaId> there;
  for (const Incarnation& one : world_.all) {
    if (!one.gone) there.insert(one.state.id);
    old_lives |=
        one.live && one.state.id.role != Role::kEvaluator &&
        (!InRange(one.state.id) || one.state.attempt != UnitIn(status, one.state.id).attempt);
    if (one.live && !one.state.deleting && !one.state.leaving && !InRange(one.state.id)) {
      Found(one.state.incarnation + " was scaled away and is left running");
    }
  }
  if (old_lives || turn.acted) return;
  bool trained = true;  // only evaluators are awaited
  for (const auto& [role, spec] : job.spec.replicas) {
    for (int32_t i = 0; i < spec.replicas; ++i) {
      const ReplicaId id{role, i};
      trained &=
          role == Role::kEvaluator || !Decides(id) || status.completed.contains(id) || Excused(id);
    }
  }
  for (const auto& [role, spec] : job.spec.replicas) {
    if (trained && role != Role::kEvaluator) continue;
    for (int32_t i = 0; i < spec.replicas; ++i) {
      const ReplicaId id{role, i};
      const Time from = UnitIn(status, id).not_before;
      if (there.contains(id) || status.completed.contains(id) || from <= now) continue;
      expect(from, "a pause is over");
    }
  }
}

void Checks::AtEnd() {
  const api::Job& job = world_.stored;
  if (!api::IsTerminal(job.status)) return Found("the job never ends");
  const bool must_end = policy_.end_leftovers || job.extensions.end_leftovers ||
                        job.extensions.elastic ||
                        job.spec.run_policy.clean_pod_policy != api::CleanPodPolicy::kNone;
  if (must_end && world_.AnyLive()) Found("replicas outlive the job");
  if (job.spec.run_policy.ttl_seconds_after_finished && !world_.deleted) {
    Found("the job outlives its time to live");
  }
}

}  // namespace backend::sim
