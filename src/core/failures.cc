#include "core/failures.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/planted_bugs.h"
#include "core/success_policy.h"
#include "core/verdict.h"

namespace core {
namespace {

using api::ReplicaId;
using api::Role;

// How long an ending that blames a peer waits for the peer's own ending, before it is taken for the
// cause.
constexpr base::Duration kSettle = std::chrono::seconds(5);
// How long after its return a peer may be to blame.
constexpr base::Duration kAftershock = std::chrono::minutes(1);

// It exited because a peer was lost, by its own words. One that was killed did not, whatever it had
// said.
bool BlamesAPeer(const Ending& ending) {
  return ending.code < 128 && core::BlamesAPeer(TellingLine(ending.last_lines));
}

// A member runs, as far as is known.
bool AnyRuns(const View& view) {
  return std::ranges::any_of(view.replicas, [&](const ReplicaState& r) {
    return view.IsCurrent(r) && InGang(r.id.role) && r.phase == Phase::kRunning;
  });
}

// When the copy of it that is wanted was started; now, if that is still to come.
base::Time StartOf(const View& view, ReplicaId id) {
  for (const ReplicaState& r : view.replicas) {
    if (r.id == id && view.IsCurrent(r) && r.started) return *r.started;
  }
  return view.now;
}

// A coordinator that gave up over a peer that was away until just now: the other peers need a
// moment to find that one again, and TensorFlow does not give it to them.
bool IsAftershock(const View& view, const ReplicaState& r) {
  if (!Coordinators(view.job).contains(r.id) || !BlamesAPeer(*r.ending)) return false;
  return std::ranges::any_of(view.status.units, [&](const auto& entry) {
    const auto& [id, unit] = entry;
    return id != r.id && (id.role == Role::kPs || id.role == Role::kWorker) && unit.attempt > 0 &&
           r.ending->when - StartOf(view, id) < kAftershock;
  });
}

Meaning MeaningIn(const View& view, const ReplicaState& r) {
  const Meaning meaning = view.MeaningFor(r);
  const bool by_exit_code =
      view.job.spec.replicas.at(r.id.role).restart_policy == api::RestartPolicy::kExitCode;
  return meaning == Meaning::kPermanent && by_exit_code && IsAftershock(view, r)
             ? Meaning::kRetryable
             : meaning;
}

}  // namespace

std::vector<Failure> FailuresIn(const View& view) {
  std::vector<Failure> out;
  std::set<ReplicaId> there;
  for (const ReplicaState& r : view.replicas) {
    if (!view.IsCurrent(r)) continue;
    there.insert(r.id);
    if (!HasEnded(r) || view.status.completed.contains(r.id)) continue;
    const Meaning meaning = MeaningIn(view, r);
    if (meaning == Meaning::kFine || meaning == Meaning::kUnclear) continue;
    // As training-operator v1.9: dynamic workers may fail without failing the job. But not one
    // that the job's success waits for, or it would wait for ever.
    if (meaning == Meaning::kPermanent && view.job.spec.enable_dynamic_worker &&
        r.id.role == Role::kWorker && !Decides(view.job, view.status, r.id)) {
      continue;
    }
    out.push_back({.id = r.id,
                   .ending = *r.ending,
                   .meaning = meaning,
                   .started = r.started,
                   .silent = !r.silent.empty(),
                   .blames_a_peer = InGang(r.id.role) && BlamesAPeer(*r.ending)});
  }
  // Taken away, nobody knows when: as early as any ending that it may explain.
  base::Time when = view.now;
  for (const Failure& f : out) when = std::min(when, f.ending.when);
  const auto taken_away = [&](ReplicaId id, const std::string& silent = "") {
    Ending gone{
        .code = 137, .when = when, .disruption = silent.empty() ? "deleted by somebody" : silent};
    out.push_back({.id = id,
                   .ending = gone,
                   .meaning = BUG(kVanishedIsFailure) ? Meaning::kRetryable : Meaning::kDisruption,
                   .started = view.UnitOf(id).not_before,
                   .inferred = true,
                   .silent = !silent.empty()});
  };
  for (ReplicaId id : view.status.seen) {
    if (!there.contains(id) && !view.status.completed.contains(id)) taken_away(id);
  }
  // One that somebody is deleting may use its grace to save its work. But once its gang is
  // broken, or the coordinator of a parameter server has ended, that is why.
  const auto ended = [&](auto whose) { return std::ranges::any_of(out, whose, &Failure::id); };
  const std::set<ReplicaId> coordinators = Coordinators(view.job);
  const bool gang_ended = view.IsGang() && ended([](ReplicaId id) { return InGang(id.role); });
  const bool coordinator_ended = ended([&](ReplicaId id) { return coordinators.contains(id); });
  // So may one whose host is silent, as long as everybody else only says that a peer was lost.
  const auto own_cause = [](const Failure& f) {
    return InGang(f.id.role) && f.meaning != Meaning::kDisruption && !f.blames_a_peer;
  };
  const bool peer_lost = std::ranges::any_of(out, &Failure::blames_a_peer) &&
                         !(view.IsGang() && std::ranges::any_of(out, own_cause));
  for (const ReplicaState& r : view.replicas) {
    if (HasEnded(r) || !view.IsCurrent(r) || !InGang(r.id.role)) continue;
    const bool deleted =
        r.deleting && (view.IsGang() ? gang_ended : coordinator_ended && r.id.role == Role::kPs);
    const bool silent = !r.silent.empty() && peer_lost && !BUG(kIgnoreSilence);
    if (deleted || silent) taken_away(r.id, r.silent);
  }
  if (view.TrainingIsDone()) {
    std::erase_if(out, [](const Failure& f) { return f.id.role != Role::kEvaluator; });
  }
  std::ranges::sort(out, {}, [](const Failure& f) { return std::tuple(f.ending.when, f.id); });
  return out;
}

Cause FirstCause(const View& view, const std::vector<Failure>& failures, const Policy& policy) {
  if (BUG(kLatestIsCause)) return {&failures.back(), {}};
  const Failure* disruption = nullptr;
  for (const Failure& f : failures) {
    // An ending that was seen says who took it away and why.
    const bool tells_more = !disruption || (disruption->inferred && !f.inferred);
    if (f.meaning == Meaning::kDisruption && tells_more) disruption = &f;
  }
  if (disruption) return {disruption, {}};
  const Failure* first = &failures.front();
  for (const Failure& f : failures) {
    if (f.ending.when >= failures.front().ending.when + policy.clock_resolution) break;
    if (f.meaning < first->meaning) first = &f;
  }
  if (!first->blames_a_peer) return {first, {}};
  for (const Failure& f : failures) {
    if (!f.blames_a_peer) return {&f, {}};
  }
  if (first->meaning == Meaning::kPermanent) {
    const auto other = std::ranges::find_if(
        failures, [](Meaning m) { return m != Meaning::kPermanent; }, &Failure::meaning);
    if (other != failures.end()) return {&*other, {}};
  }
  const bool others_live = std::ranges::any_of(view.replicas, [&](const ReplicaState& r) {
    return view.IsCurrent(r) && InGang(r.id.role) && !HasEnded(r);
  });
  const base::Duration patience =
      AnyRuns(view) ? std::max(kSettle, policy.notices_silence) : kSettle;
  const base::Time settled = first->ending.when + patience;
  // An ending that is still to come was timed by another clock: not waited for longer than twice.
  if (!others_live || view.now >= settled || settled > view.now + 2 * patience) return {first, {}};
  return {nullptr, settled};
}

std::optional<base::Time> WaitsUntil(const View& view, const Failure& failure,
                                     const Policy& policy) {
  const base::Time settled = failure.ending.when + policy.notices_silence;
  const bool waits = failure.blames_a_peer && failure.meaning != Meaning::kDisruption &&
                     api::ReplicasOf(view.job.spec, Role::kPs) > 0 && AnyRuns(view) &&
                     view.now < settled;
  return waits ? std::optional(settled) : std::nullopt;
}

}  // namespace core
