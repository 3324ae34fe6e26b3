#include "backend/sim/checks.h"

#include <algorithm>

#include <fmt/core.h>

namespace backend::sim {

using api::ReplicaId;
using api::ReplicasOf;
using api::Role;
using base::Duration;
using base::Time;
using namespace std::chrono_literals;

void Checks::Found(const std::string& what) {
  if (!finding_.empty()) return;
  finding_ = what;
  world_.Trace("FOUND: " + what);
}

bool Checks::InGang(ReplicaId id) const {
  return world_.kind == Kind::kGang && id.role != Role::kEvaluator;
}

bool Checks::InRange(ReplicaId id) const {
  return id.index < ReplicasOf(world_.stored.spec, id.role);
}

api::Unit Checks::UnitIn(const api::JobStatus& status, ReplicaId id) const {
  if (auto it = status.units.find(id); it != status.units.end()) return it->second;
  return id.role == Role::kEvaluator ? api::Unit() : status.gang;
}

std::set<ReplicaId> Checks::Coordinators() const {
  std::set<ReplicaId> out;
  for (Role role : {Role::kChief, Role::kMaster}) {
    for (int32_t i = 0; i < ReplicasOf(world_.stored.spec, role); ++i) out.insert({role, i});
  }
  if (out.empty()) out.insert({Role::kWorker, 0});
  return out;
}

// It is beyond the minimum of an elastic job, and had not begun when the data was done.
bool Checks::Excused(ReplicaId id) const {
  const auto& elastic = world_.stored.extensions.elastic;
  const core::Observed& view = world_.view();
  if (!elastic || id.role != Role::kWorker || id.index < elastic->min) return false;
  return view.data && view.data->complete &&
         std::ranges::none_of(view.replicas, [&](const core::ReplicaState& r) {
           return r.id == id && r.phase == core::Phase::kRunning;
         });
}

bool Checks::Decides(ReplicaId id) const {
  const api::Job& job = world_.stored;
  if (id.role == Role::kEvaluator) return job.extensions.wait_for_evaluator;
  const bool led = ReplicasOf(job.spec, Role::kChief) + ReplicasOf(job.spec, Role::kMaster) > 0;
  if (led) return id.role == Role::kChief || id.role == Role::kMaster;
  return id.role == Role::kWorker &&
         (id.index == 0 || job.spec.success_policy == api::SuccessPolicy::kAllWorkers ||
          (world_.view().data && world_.view().data->registered));
}

Checks::Sort Checks::SortOf(const Incarnation& one) const {
  const core::Ending& ending = *one.state.ending;
  const auto it = world_.stored.spec.replicas.find(one.state.id.role);
  const auto policy = it == world_.stored.spec.replicas.end() ? api::RestartPolicy::kNever
                                                              : it->second.restart_policy;
  if (!ending.disruption.empty() || ending.code == 42) return Sort::kDisruption;
  if (world_.stored.extensions.elastic && one.state.id.role == Role::kWorker &&
      ending.memory_limit_by.empty() && (ending.code == 137 || ending.code == 143)) {
    return Sort::kDisruption;
  }
  if (ending.code == 0) {
    if (IsMisled(one) && world_.view().data->todo > 0) return Sort::kDisruption;
    const bool again =
        policy == api::RestartPolicy::kAlways && !Decides(one.state.id) && !InGang(one.state.id);
    return again ? Sort::kRetryable : Sort::kFine;
  }
  switch (policy) {
    case api::RestartPolicy::kNever:
      return Sort::kPermanent;
    case api::RestartPolicy::kExitCode:
      return ending.code < 128 ? Sort::kPermanent : Sort::kRetryable;
    default:
      return Sort::kRetryable;
  }
}

bool Checks::IsMisled(const Incarnation& one) const {
  const auto& data = world_.view().data;
  return data && data->registered && !data->complete &&
         data->misled.contains({one.state.id, one.state.attempt});
}

std::vector<Checks::Bad> Checks::BadEndings(std::optional<ReplicaId> id, int32_t attempt) const {
  std::vector<Bad> out, silent;
  bool own_cause = false;
  for (const Incarnation& one : world_.all) {
    if (one.state.attempt != attempt || one.stop_asked) continue;
    if (id ? one.state.id != *id : !InGang(one.state.id)) continue;
    if (one.seen_live) {
      if (one.seen_deleting) {
        out.push_back({&one, Sort::kDisruption, true});
      } else if (one.seen_silent) {
        silent.push_back({&one, Sort::kDisruption, true});
      }
      continue;
    }
    if (const Sort sort = SortOf(one); sort != Sort::kFine) {
      out.push_back({&one, one.seen_gone ? Sort::kDisruption : sort, one.seen_gone});
      own_cause |= out.back().sort != Sort::kDisruption && !one.consequence;
    }
  }
  // One whose node is silent explains those who followed it, and nothing else.
  if (!own_cause) out.insert(out.end(), silent.begin(), silent.end());
  return out;
}

bool Checks::HadFinished(const api::JobStatus& status) const {
  const auto ended_well = [&](ReplicaId id) {
    return std::ranges::any_of(world_.all, [&](const Incarnation& one) {
      const int32_t attempt = UnitIn(status, id).attempt;
      return one.state.id == id && one.state.attempt == attempt && !one.seen_live &&
             !one.seen_gone && one.state.ending->code == 0 &&
             one.state.ending->disruption.empty() && !one.stop_asked && !IsMisled(one) &&
             !(world_.view().data && world_.view().data->unheard.contains({id, attempt}));
    });
  };
  bool any = false;
  for (const auto& [role, spec] : world_.stored.spec.replicas) {
    for (int32_t i = 0; i < spec.replicas; ++i) {
      const ReplicaId id{role, i};
      if (!Decides(id)) continue;
      any = true;
      if (!status.completed.contains(id) && !ended_well(id)) return false;
    }
  }
  return any;
}

// ---- What is published ----

void Checks::Publishing(const api::JobStatus& after) {
  const api::JobStatus& before = world_.stored.status;
  CheckConditions(before, after);
  if (api::IsTerminal(before)) return;
  CheckCounters(before, after);
  for (ReplicaId id : after.completed) {
    if (before.completed.contains(id)) continue;
    const int32_t attempt = UnitIn(after, id).attempt;
    const bool done = std::ranges::any_of(world_.all, [&](const Incarnation& one) {
      return one.state.id == id && one.state.attempt == attempt && !one.live &&
             one.state.ending->code == 0 && !one.stop_asked && !IsMisled(one) &&
             !(world_.view().data && world_.view().data->unheard.contains({id, attempt}));
    });
    if (!done) Found(api::ToString(id) + " counts as completed without having ended well");
  }
  if (api::Has(after, "Failed")) {
    CheckFailed(before, after);
  } else {
    CheckRaises(before, after);
  }
  if (api::Has(after, "Succeeded")) CheckSucceeded(after);
  if (api::Has(after, "Suspended") && !api::Has(before, "Suspended") && HadFinished(before)) {
    Found("suspended though it had finished");
  }
}

void Checks::CheckConditions(const api::JobStatus& before, const api::JobStatus& after) {
  const bool succeeded = api::Has(after, "Succeeded"), failed = api::Has(after, "Failed");
  const bool running = api::Has(after, "Running"), restarting = api::Has(after, "Restarting");
  const bool suspended = api::Has(after, "Suspended");
  if (succeeded && failed) Found("both Succeeded and Failed");
  if ((succeeded || failed) && (running || restarting || suspended)) {
    Found("ended, yet Running, Restarting or Suspended");
  }
  if (running && restarting) Found("both Running and Restarting");
  if (suspended && (running || restarting)) Found("Suspended, yet Running or Restarting");
  if ((succeeded || failed) && !(after.completion_time && after.verdict)) {
    Found("ended without a completion time or a verdict");
  }
  if (api::IsTerminal(before) &&
      (before.conditions != after.conditions || before.restarts != after.restarts ||
       before.disruptions != after.disruptions || before.attempt != after.attempt)) {
    Found("an ended job changed");
  }
}

void Checks::CheckCounters(const api::JobStatus& before, const api::JobStatus& after) {
  if (after.restarts < before.restarts || after.disruptions < before.disruptions ||
      after.attempt < before.attempt || after.gang.attempt < before.gang.attempt) {
    Found("a counter went back");
  }
  for (const auto& [id, unit] : after.units) {
    if (unit.attempt < UnitIn(before, id).attempt) Found("an attempt went back");
  }
  const auto limit = world_.stored.spec.run_policy.backoff_limit;
  if (after.restarts > before.restarts && limit && after.restarts > *limit) {
    Found("more restarts than backoffLimit");
  }
}

// Each restart has a cause that has not been answered before, and each cause is counted once.
void Checks::CheckRaises(const api::JobStatus& before, const api::JobStatus& after) {
  const int32_t failures = after.restarts - before.restarts;
  const int32_t disruptions = after.disruptions - before.disruptions;
  std::map<int32_t, std::set<ReplicaId>> groups;  // by the new attempt, unplanned
  bool planned = false;
  std::set<ReplicaId> everybody;
  for (const auto& [role, spec] : world_.stored.spec.replicas) {
    for (int32_t i = 0; i < spec.replicas; ++i) everybody.insert({role, i});
  }
  for (ReplicaId id : everybody) {
    const api::Unit was = UnitIn(before, id), is = UnitIn(after, id);
    if (is.attempt == was.attempt) {
      if (before.completed.contains(id) && !after.completed.contains(id)) {
        Found(api::ToString(id) + " was completed and is no more, in the same attempt");
      }
      continue;
    }
    if (before.completed.contains(id) && !is.planned && !InGang(id)) {
      Found(api::ToString(id) + " was completed and is to run again");
    }
    if (is.planned) {
      planned = true;
    } else {
      groups[is.attempt].insert(id);
    }
  }
  if (planned && !std::exchange(planned_allowed_, false)) {
    Found("a planned restart that nobody asked for");
  }
  const bool plain = !planned && groups.size() == 1;
  if (planned || groups.size() > 1) ForgetRows(after);
  if (std::ssize(groups) != failures + disruptions) {
    Found(fmt::format("{} restarts, but {} failures and {} disruptions counted", groups.size(),
                      failures, disruptions));
    return;
  }
  for (const auto& [attempt, ids] : groups) {
    const bool gang = InGang(*ids.begin());
    if (gang) {
      if (ids.size() != static_cast<size_t>(std::ranges::count_if(
                            everybody, [&](ReplicaId id) { return InGang(id); }))) {
        Found("only a part of a gang is restarted");
      }
      const api::Unit was = UnitIn(before, *ids.begin());
      const auto bad = BadEndings(std::nullopt, was.attempt);
      if (bad.empty()) Found("a gang is restarted without a cause");
      if (groups.size() == 1) CheckCause(bad, failures > 0);
      if (plain) {
        CheckPause(*ids.begin(), bad, after.gang);
      }
      continue;
    }
    std::vector<Bad> bad;
    bool ps = false;
    // Workers keep a connection to a parameter server whose node is silent.
    const bool silent_ps = std::ranges::any_of(world_.all, [&](const Incarnation& one) {
      const ReplicaId id = one.state.id;
      return id.role == Role::kPs && ids.contains(id) && one.seen_silent &&
             one.state.attempt == UnitIn(before, id).attempt;
    });
    for (ReplicaId id : ids) {
      const auto own = BadEndings(id, UnitIn(before, id).attempt);
      ps |= id.role == Role::kPs && !own.empty();
      if (own.empty() && !Coordinators().contains(id) && !(silent_ps && id.role == Role::kWorker)) {
        Found(api::ToString(id) + " is restarted without a cause");
      }
      bad.insert(bad.end(), own.begin(), own.end());
    }
    if (!ps && bad.empty()) Found("a replica is restarted without a cause");
    if (!ps && std::ranges::all_of(bad, [](const Bad& b) { return b.one->consequence; })) {
      Found("what followed from another's end is counted as a failure of its own");
    }
    for (ReplicaId id : ids) {
      if (!ps || world_.kind != Kind::kServers) break;
      for (ReplicaId chief : Coordinators()) {
        const bool raised = UnitIn(after, chief).attempt >= attempt;
        if (!raised && !before.completed.contains(chief) && !after.completed.contains(chief)) {
          Found("a lost parameter server is restarted without its coordinator");
        }
      }
      if (id.role != Role::kPs) continue;
    }
    if (groups.size() == 1) {
      std::erase_if(bad, [&](const Bad& b) { return ps && b.one->state.id.role != Role::kPs; });
      CheckCause(bad, failures > 0);
      if (plain && bad.size() == 1) {
        const ReplicaId id = bad.front().one->state.id;
        CheckPause(id, bad, UnitIn(after, id));
      } else {
        ForgetRows(after);
      }
    }
  }
}

// A disruption explains whatever else ended.
void Checks::CheckCause(const std::vector<Bad>& bad, bool counted_as_failure) {
  if (bad.empty()) return Found("a restart without a cause");
  bool failure = false, disruption = false;
  for (const Bad& b : bad) {
    failure |= b.sort != Sort::kDisruption && !b.one->consequence;
    disruption |= b.sort == Sort::kDisruption;
  }
  if (counted_as_failure && (disruption || !failure)) {
    Found("counted as a failure, but its cause is a disruption");
  }
  if (!counted_as_failure && !disruption)
    Found("counted as a disruption, but its cause is a failure");
}

// At once, then 1 s, doubling to 5 min; from the start again after an attempt of 10 minutes. The
// row is counted here a second time, as far as the cause is plain.
void Checks::CheckPause(ReplicaId key, const std::vector<Bad>& bad, const api::Unit& after) {
  Row& row = rows_[key];
  if (bad.size() != 1 || bad.front().timeless) {
    row = {after.failures_in_row, after.disruptions_in_row};
    return;
  }
  const core::ReplicaState& r = bad.front().one->state;
  if (r.started && r.ending->when - *r.started >= 10min) row = {};
  int32_t& in_row = bad.front().sort == Sort::kDisruption ? row.disruptions : row.failures;
  ++in_row;
  Duration pause = in_row <= 1 ? Duration(0) : Duration(1s);
  for (int32_t i = 2; i < in_row && pause < 5min; ++i) pause *= 2;
  pause = std::min(pause, Duration(5min));
  const Duration given = after.not_before - world_.ControllerTime();
  if (given != pause) {
    Found(fmt::format("a pause of {} ms where {} ms are due", given.count() / 1000,
                      pause.count() / 1000));
  }
}

// Where what happened is not plain, the status is believed.
void Checks::ForgetRows(const api::JobStatus& status) {
  rows_.clear();
  for (const auto& [role, spec] : world_.stored.spec.replicas) {
    for (int32_t i = 0; i < spec.replicas; ++i) {
      const api::Unit unit = UnitIn(status, {role, i});
      rows_[{role, i}] = {unit.failures_in_row, unit.disruptions_in_row};
    }
  }
}

void Checks::CheckFailed(const api::JobStatus& before, const api::JobStatus& after) {
  const api::Job& job = world_.stored;
  const std::string& message = api::FindCondition(after, "Failed")->message;
  if (message.find("deadline") != std::string::npos) {
    const auto seconds = job.spec.run_policy.active_deadline_seconds;
    if (!seconds || !after.start_time ||
        world_.ControllerTime() < *after.start_time + std::chrono::seconds(*seconds)) {
      Found("failed by a deadline that has not passed");
    }
    return;
  }
  if (message.find("started in time") != std::string::npos) {
    const auto patience = job.extensions.start_deadline;
    if (!patience || world_.ControllerTime() < *after.start_time + *patience) {
      Found("failed by a start deadline that has not passed");
    }
    return;
  }
  bool any_permanent = false, any_retryable = false, explained = false;
  for (const auto& [role, spec] : job.spec.replicas) {
    for (int32_t i = 0; i < spec.replicas; ++i) {
      const ReplicaId id{role, i};
      for (const Bad& b : BadEndings(id, UnitIn(before, id).attempt)) {
        any_retryable |= b.sort == Sort::kRetryable;
        any_permanent |= b.sort == Sort::kPermanent && !b.one->consequence;
        explained |= b.sort == Sort::kPermanent && b.one->consequence;
      }
    }
  }
  if (message.find("backoff limit") != std::string::npos) {
    const auto limit = job.spec.run_policy.backoff_limit;
    if (!any_retryable) Found("failed by backoffLimit without a failure");
    if (!limit || after.restarts < *limit) Found("failed before backoffLimit was spent");
    return;
  }
  if (!any_permanent) {
    Found(explained ? "failed because of an ending that only followed from another"
                    : "failed without a failure");
  }
  // A gang that was first broken in a way that allows a restart is restarted.
  if (world_.kind == Kind::kGang) {
    const auto bad = BadEndings(std::nullopt, before.gang.attempt);
    Time permanent = Time::max(), other = Time::max();
    bool in_gang = false;
    for (const Bad& b : bad) {
      if (b.sort == Sort::kDisruption) {
        other = Time::min();
      } else if (b.sort == Sort::kPermanent && !b.one->consequence) {
        permanent = std::min(permanent, b.one->state.ending->when);
        in_gang = true;
      } else if (b.sort != Sort::kPermanent) {
        other = std::min(other, b.one->state.ending->when);
      }
    }
    bool evaluator = false;
    for (int32_t i = 0; i < ReplicasOf(job.spec, Role::kEvaluator); ++i) {
      const ReplicaId id{Role::kEvaluator, i};
      for (const Bad& b : BadEndings(id, UnitIn(before, id).attempt)) {
        evaluator |= b.sort == Sort::kPermanent;
      }
    }
    if (in_gang && !evaluator && other < permanent + policy_.clock_resolution &&
        (other == Time::min() || other < permanent)) {
      Found("failed although the gang was first broken in a way that allows a restart");
    }
  }
}

void Checks::CheckSucceeded(const api::JobStatus& after) {
  for (const auto& [role, spec] : world_.stored.spec.replicas) {
    for (int32_t i = 0; i < spec.replicas; ++i) {
      if (Decides({role, i}) && !after.completed.contains({role, i}) && !Excused({role, i})) {
        Found("succeeded before " + api::ToString(ReplicaId{role, i}) + " had ended well");
      }
    }
  }
  const auto& data = world_.view().data;
  if (!data || !data->registered) return;
  if (!after.shards || after.shards->complete != data->complete ||
      after.shards->records_left != data->records_left) {
    Found("the status does not say how much data was left");
  }
  if (!data->complete && std::ranges::none_of(world_.all, &Incarnation::stops_early)) {
    Found("succeeded with data left, and nobody wanted it so");
  }
}

}  // namespace backend::sim
