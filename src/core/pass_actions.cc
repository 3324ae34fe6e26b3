// The end of a pass: what is to be done, from nothing but (status, observed).
#include <algorithm>

#include "core/elastic.h"
#include "core/pass.h"
#include "core/planted_bugs.h"
#include "core/wishes.h"

namespace core {
namespace {

// How long workers of a collective may take to exit by themselves once worker 0 is done: they end
// within the same second, and a kill would put an error into logs of a job that went well.
constexpr base::Duration kLinger = std::chrono::seconds(10);

}  // namespace

using api::ReplicaId;
using api::Role;
using base::Time;

void Pass::Act() {
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
    // A coordinator that meets a parameter server on its way out loses it, and fails. So does one
    // that meets a worker whose host is silent.
    const bool would_fail_others = r.id.role == Role::kPs || !r.silent.empty();
    if (would_fail_others && view_.InRange(r.id)) wait = Coordinators(job_);
    // The survivors of a broken gang have nothing left to save and may hang in a collective.
    const bool graceful = !view_.InRange(r.id) || (view_.UnitOf(r.id).planned && !BUG(kNoGrace));
    const bool works = r.id.role == Role::kWorker && job_.extensions.elastic && status_.shards;
    AskToEnd(r, graceful, graceful && works);
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
      if (unit.not_before > now_ && !BUG(kIgnoreNotBefore)) {
        if (!BUG(kNoBackoffTimer)) LookAgain(unit.not_before);
      } else {
        decision_.actions.push_back(Start{id, unit.attempt});
      }
    }
  }
}

// One that is ending in its own time is not asked again, nor one whose host does not hear it.
void Pass::AskToEnd(const ReplicaState& r, bool graceful, bool finish) {
  if ((r.deleting && (graceful || !r.silent.empty())) || (finish && r.leaving)) return;
  decision_.actions.push_back(
      Stop{r.id, BUG(kForgetIncarnation) ? "" : r.incarnation, graceful, finish});
}

void Pass::CleanUp() {
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
  // The evaluator of an elastic job evaluates for ever, and its parameter servers never end.
  const bool none_outlives =
      policy_.end_leftovers || job_.extensions.end_leftovers || job_.extensions.elastic;
  const bool stop = (none_outlives && !BUG(kLeaveLeftovers)) ||
                    clean != api::CleanPodPolicy::kNone || WasStopped(status_);
  const bool broken = view_.IsGang() && std::ranges::any_of(replicas_, [&](const ReplicaState& r) {
                        return view_.IsCurrent(r) && InGang(r.id.role) &&
                               r.phase == Phase::kFailed && !r.ending->stopped;
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
    const bool evaluator = r.id.role == Role::kEvaluator;
    if (succeeded && none_outlives &&
        (evaluator ? job_.extensions.elastic.has_value() : view_.IsGang())) {
      const base::Duration patient = evaluator ? kLastEvaluation : kLinger;
      const Time patience = *status_.completion_time + patient;
      // A completion that is still to come was recorded under another clock.
      if (now_ < patience && patience <= now_ + patient) {
        LookAgain(patience);
        continue;
      }
    }
    AskToEnd(r, succeeded || !broken || !InGang(r.id.role));
  }
  const auto ttl = job_.spec.run_policy.ttl_seconds_after_finished;
  if (!ttl) return;
  // A later time was recorded before the clock was set back.
  status_.completion_time =
      std::min(*status_.completion_time, Time(std::chrono::floor<std::chrono::seconds>(now_)));
  const Time expiry = *status_.completion_time + std::chrono::seconds(*ttl);
  if (now_ < expiry && BUG(kNoTtlTimer)) return;
  if (now_ < expiry && !BUG(kTtlAtOnce)) return LookAgain(expiry);
  if (!leftovers) decision_.actions.push_back(DeleteJob{});
}

}  // namespace core
