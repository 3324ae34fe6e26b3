#include "backend/sim/world.h"

#include <algorithm>
#include <csignal>

#include <fmt/core.h>

namespace backend::sim {

using api::ReplicaId;
using api::ReplicasOf;
using api::Role;
using base::Duration;
using base::Time;
using core::Phase;
using namespace std::chrono_literals;

namespace {

constexpr Duration kCheckpointEvery = 10s;
const char kSilentNode[] = "node n1 does not answer";
const char kPeerLost[] = "UnavailableError: Collective ops is aborted by: Socket closed";

bool Contains(const std::vector<ReplicaId>& ids, ReplicaId id) {
  return std::ranges::find(ids, id) != ids.end();
}

base::Result<> Refused(const char* why) {
  return std::unexpected(base::Error(base::ErrorKind::kUnavailable, why));
}

}  // namespace

World::World(uint64_t seed, bool is_cluster)
    : now(Time(1'794'779'400s)), random(seed), cluster(is_cluster) {}

void World::Trace(const std::string& line) {
  for (const char c : line) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211u;
  digest = (digest ^ static_cast<uint64_t>(now.time_since_epoch().count())) * 1099511628211u;
  if (!tracing) return;
  trace += fmt::format("{:10.3f}  {}\n",
                       static_cast<double>((now - Time(1'794'779'400s)).count()) / 1e6, line);
}

void World::Schedule(What what, Duration in, int32_t subject, int32_t value) {
  const auto number = static_cast<uint32_t>(++steps);
  queue.push({now + in, static_cast<uint32_t>(random.Next()), number, what, subject, value});
}

// ---- What the controller asks for ----

void World::Look() {
  view_ = {};
  for (Incarnation& one : all) {
    if (!one.gone) view_.replicas.push_back(one.state);
    one.seen_live = one.live;
    one.seen_gone = one.gone;
    one.seen_deleting = one.state.deleting;
    one.seen_silent = !one.state.silent.empty();
  }
  if (data.total == 0) return;
  core::DataView& shown = view_.data.emplace();
  shown.registered = data.registered;
  shown.complete = data.complete();
  shown.todo = data.todo;
  shown.doing = data.doing;
  shown.done = data.done;
  shown.records_left = data.total - data.done;
  shown.records_total = data.total;
  for (const Incarnation& one : all) {
    const core::Member who{one.state.id, one.state.attempt};
    if (one.misled) shown.misled.insert(who);
    if (one.unheard) shown.unheard.insert(who);
  }
}

core::Observed World::Observe(const api::Job&) {
  if (stale_views > 0) {
    --stale_views;
    Trace("a stale view");
    changed = true;
  } else {
    Look();
  }
  for (size_t i = view_.replicas.size(); i > 1; --i) {
    std::swap(view_.replicas[i - 1], view_.replicas[random.Below(static_cast<int32_t>(i))]);
  }
  return view_;
}

bool World::CrashesHere() {
  if (!crashed && crash_after >= 0 && crash_after-- == 0) {
    crashed = true;
    Trace("the controller dies");
  }
  return crashed;
}

base::Result<> World::Publish(const api::Job& job, const api::JobStatus& status,
                              const std::vector<core::Event>&) {
  if (CrashesHere()) return Refused("crashed before publish");
  if (job.status != stored.status) {
    Trace("publish refused: the status has changed");
    return std::unexpected(base::Error(base::ErrorKind::kTaken, "the status has changed"));
  }
  const bool fails = failing_publishes > 0;
  if (fails) --failing_publishes;
  if (fails && random.Chance(60)) {
    Trace("publish fails");
    return Refused("no space left on device");
  }
  if (witness) witness->Publishing(status);
  stored.status = status;
  ++publishes;
  if (tracing || status.attempt != 0) {
    std::string line = fmt::format("publish: restarts {} disruptions {} attempt {}",
                                   status.restarts, status.disruptions, status.attempt);
    if (tracing) {
      for (const api::Condition& c : status.conditions) {
        line += " " + c.type + (c.status ? "" : "-");
      }
    }
    tracing ? Trace(line) : void(digest = (digest ^ line.size()) * 1099511628211u);
  }
  if (CrashesHere()) return Refused("crashed after publish");
  if (fails) return Refused("published, but the answer was lost");
  return {};
}

base::Result<> World::Perform(const api::Job&, const core::Action& action) {
  if (crashed) return Refused("crashed");
  const bool fails = failing_actions > 0;
  if (fails) --failing_actions;
  if (fails && random.Chance(50)) {
    Trace("an action fails");
    return Refused("not now");
  }
  if (witness) witness->Performing(action);
  if (const auto* start = std::get_if<core::Start>(&action)) {
    Start(*start);
  } else if (const auto* stop = std::get_if<core::Stop>(&action)) {
    for (size_t i = 0; i < all.size(); ++i) {
      Incarnation& one = all[i];
      const bool named = stop->incarnation.empty() ? one.state.id == stop->id
                                                   : one.state.incarnation == stop->incarnation;
      if (!one.live || !named || (one.stop_asked && (stop->graceful || one.kill_asked))) continue;
      if (stop->finish && !one.state.leaving) {
        Trace(one.state.incarnation + " may leave");
        one.state.leaving = true;
        Schedule(What::kLeave, 30s, static_cast<int32_t>(i));
        continue;
      }
      Trace("stop " + one.state.incarnation + (stop->graceful ? "" : " hard"));
      one.stop_asked = one.state.deleting = true;
      one.kill_asked |= !stop->graceful;
      one.dying |= one.kill_asked;
      if (one.silenced) {  // nobody hears it
        one.state.silent = kSilentNode;
        continue;
      }
      const Duration in = stop->graceful ? random.Between(100ms, 10s) : random.Between(1ms, 500ms);
      Schedule(What::kStopped, in, static_cast<int32_t>(i), stop->graceful ? 0 : 1);
    }
  } else if (const auto* remove = std::get_if<core::Remove>(&action)) {
    for (Incarnation& one : all) {
      if (one.state.incarnation == remove->incarnation && !one.live) one.gone = true;
    }
  } else {
    Trace("delete the job");
    deleted = true;
  }
  Look();
  if (CrashesHere()) return Refused("crashed after an action");
  if (fails) return Refused("done, but the answer was lost");
  return {};
}

void World::Start(const core::Start& start) {
  for (const Incarnation& one : all) {
    if (one.state.id == start.id && one.live) return;  // the name is taken
  }
  Incarnation one;
  one.state = {
      .id = start.id,
      .incarnation = fmt::format("{}@{}#{}", api::ToString(start.id), start.attempt, all.size()),
      .attempt = start.attempt};
  Trace("start " + one.state.incarnation);
  all.push_back(one);
  const auto subject = static_cast<int32_t>(all.size() - 1);
  if (cluster) {
    Schedule(What::kUp, random.Between(200ms, 20s), subject);
  } else {
    Happen({.at = now, .what = What::kUp, .subject = subject});
  }
}

// ---- How replicas live and die ----

bool World::Happen(const Happening& h) {
  if (h.what == What::kWorkDone) {
    if (h.value == epoch_) WorkDone(h.subject);
    return true;
  }
  if (h.what != What::kUp && h.what != What::kExit && h.what != What::kStopped &&
      h.what != What::kVanish && h.what != What::kCollect && h.what != What::kShard &&
      h.what != What::kHeard && h.what != What::kLeave && h.what != What::kSilent) {
    return false;
  }
  Incarnation& one = all[static_cast<size_t>(h.subject)];
  switch (h.what) {
    case What::kUp:
      if (!one.live || one.state.phase != Phase::kPending) break;
      one.state.phase = Phase::kRunning;
      one.state.started = ReplicaTime();
      changed = true;
      if (TakesShards(one.state.id)) {
        Schedule(What::kShard, random.Between(10ms, 5s), h.subject);
      } else if (kind == Kind::kIndependent) {
        Schedule(What::kExit, random.Between(work / 2, work), h.subject, 0);
      } else if (trained_ && (one.state.id.role == Role::kEvaluator ||
                              (kind == Kind::kServers && Contains(Drivers(), one.state.id)))) {
        Schedule(What::kExit, random.Between(1s, 20s), h.subject, 0);
      }
      Advance();
      break;
    case What::kExit:
      if (!one.live || one.silenced || one.state.phase != Phase::kRunning) break;
      one.consequence = h.value == 1;
      End(one, h.value);
      break;
    case What::kShard:
      if (one.live && !one.dying && one.state.phase == Phase::kRunning) TakeShard(h.subject);
      break;
    case What::kHeard:
      one.unheard = false;
      changed = true;
      break;
    case What::kLeave:  // it has had its time
      if (!one.live || one.stop_asked) break;
      one.stop_asked = one.state.deleting = changed = true;
      Schedule(What::kStopped, random.Between(100ms, 10s), h.subject);
      break;
    case What::kStopped:
      if (!one.live || one.silenced) break;
      End(one, h.value == 1 ? 137 : random.Chance(20) ? 0 : random.Chance(20) ? 42 : 143);
      if (cluster) one.gone = true;
      break;
    case What::kSilent:
      if (!one.live) break;
      Trace(one.state.incarnation + " is known to be silent");
      one.state.silent = kSilentNode;
      changed = true;
      break;
    case What::kVanish:
      if (!one.live) break;
      Trace(one.state.incarnation + " vanishes");
      // The finalizer keeps what nobody has seen yet.
      if (h.value == 0 || !one.observed) {
        Kill(one, random.Chance(50) ? 143 : 42, "deleted");
      } else {
        Kill(one, 137, "node lost");
        one.gone = true;
      }
      break;
    case What::kCollect:  // what is left of one that has ended, and is known to have ended, is
                          // dropped
      one.gone |= stored.status.completed.contains(one.state.id);
      changed = true;
      break;
    default:
      break;
  }
  return true;
}

void World::End(Incarnation& one, int32_t code) {
  if (!one.live) return;
  one.live = false;
  one.state.phase = code == 0 ? Phase::kSucceeded : Phase::kFailed;
  const Time when = ReplicaTime();
  one.state.ending = core::Ending{
      .code = code, .signal = code > 128 ? code - 128 : 0, .when = when, .stopped = one.stop_asked};
  if (one.state.deleting && !one.stop_asked) one.state.ending->disruption = "deleted";
  if (one.consequence && (!cluster || AnySilenced())) one.state.ending->last_lines = {kPeerLost};
  Trace(fmt::format("{} ends with {}{}", one.state.incarnation, code,
                    one.consequence ? ", following" : ""));
  changed = true;
  if (TakesShards(one.state.id)) {
    // Told of the end, it had trained what it had; else nobody knows.
    data.doing -= one.shards;
    (code == 0 && one.misled && data.todo == 0 ? data.done : data.todo) += one.shards;
    one.shards = 0;
    one.unheard = true;
    Schedule(What::kHeard, random.Chance(80) ? Duration(1ms) : random.Between(1ms, 10s),
             static_cast<int32_t>(&one - all.data()));
  }
  if (code != 0 || one.stop_asked) Follow(one);
  if (code == 0 && random.Chance(30)) {
    Schedule(What::kCollect, random.Between(1s, 30s), static_cast<int32_t>(&one - all.data()));
  }
  Advance();
}

void World::Kill(Incarnation& one, int32_t code, const std::string& disruption) {
  one.consequence = false;
  End(one, code);
  if (!disruption.empty()) one.state.ending->disruption = disruption;
}

void World::DeleteBySomebody(int32_t subject) {
  Incarnation& one = all[static_cast<size_t>(subject)];
  one.state.deleting = changed = true;
  Trace("somebody deletes " + one.state.incarnation);
  if (random.Chance(40)) {  // its process ends long before its pod
    one.dying = true;
    Follow(one);
    Advance();
  }
  const int32_t without_ending = random.Chance(50) ? 1 : 0;
  Schedule(What::kVanish, random.Between(1s, 30s), subject, without_ending);
}

void World::Silence(int32_t subject) {
  Incarnation& one = all[static_cast<size_t>(subject)];
  Trace("the node of " + one.state.incarnation + " is lost");
  one.silenced = one.dying = true;
  Follow(one);
  Advance();
  Schedule(What::kSilent, random.Between(40s, 55s), subject);
  Schedule(What::kVanish, random.Between(60s, 400s), subject, 1);
}

bool World::AnySilenced() const {
  return std::ranges::any_of(all, [](const Incarnation& one) { return one.live && one.silenced; });
}

void World::TakeAwayAll() {
  for (Incarnation& one : all) {
    if (one.live) Kill(one, 137, "supervisor lost");
  }
}

bool World::IsGangMember(const core::ReplicaState& r) const {
  return kind == Kind::kGang && r.id.role != Role::kEvaluator;
}

// Who cannot go on without the lost one (reference: how TensorFlow dies).
void World::Follow(const Incarnation& lost) {
  const std::vector<ReplicaId> drivers = Drivers();
  for (size_t i = 0; i < all.size(); ++i) {
    const Incarnation& peer = all[i];
    if (!peer.live || &peer == &lost || peer.state.phase != Phase::kRunning) continue;
    if (IsGangMember(lost.state) && IsGangMember(peer.state) &&
        peer.state.attempt == lost.state.attempt) {
      Schedule(What::kExit, random.Between(1100ms, 12s), static_cast<int32_t>(i), 1);
    }
    if (kind == Kind::kServers && lost.state.id.role == Role::kPs &&
        lost.state.id.index < ReplicasOf(stored.spec, Role::kPs) &&
        Contains(drivers, peer.state.id)) {
      Schedule(What::kExit, random.Between(5s, 12s), static_cast<int32_t>(i), 1);
    }
  }
}

// ---- Training ----

std::vector<ReplicaId> World::Drivers() const {
  std::vector<ReplicaId> out;
  for (Role role : {Role::kChief, Role::kMaster}) {
    for (int32_t i = 0; i < ReplicasOf(stored.spec, role); ++i) out.push_back({role, i});
  }
  if (out.empty()) out.push_back({Role::kWorker, 0});
  return out;
}

bool World::IsUp(ReplicaId id, std::optional<int32_t> attempt) const {
  return std::ranges::any_of(all, [&](const Incarnation& one) {
    return one.live && !one.dying && !one.stop_asked && one.state.id == id &&
           one.state.phase == Phase::kRunning && (!attempt || one.state.attempt == *attempt);
  });
}

// Done after `work`, less what the last checkpoint kept.
void World::Advance() {
  if (kind == Kind::kIndependent) return;  // each for itself, from kUp on
  std::optional<int32_t> attempt;
  bool up = true, any = false;
  for (const auto& [role, spec] : stored.spec.replicas) {
    if (role == Role::kEvaluator || (kind == Kind::kServers && role == Role::kWorker)) continue;
    for (int32_t i = 0; i < spec.replicas && up; ++i) {
      if (kind == Kind::kGang && !attempt) {
        for (const Incarnation& one : all) {
          if (one.live && one.state.id == ReplicaId{role, i}) attempt = one.state.attempt;
        }
      }
      up = IsUp({role, i}, attempt);
      any = true;
    }
  }
  if (kind == Kind::kServers) {
    for (ReplicaId id : Drivers()) up = up && IsUp(id, std::nullopt);
  }
  up = up && any;
  if (up && !progressing_) {
    progressing_ = true;
    progressing_since_ = now;
    Schedule(What::kWorkDone, std::max(Duration(1s), work - saved_), 0, ++epoch_);
  } else if (!up && progressing_) {
    progressing_ = false;
    saved_ += (now - progressing_since_) / kCheckpointEvery * kCheckpointEvery;
    ++epoch_;
  }
}

// A worker reports what it had, and asks for the next.
void World::TakeShard(int32_t subject) {
  Incarnation& one = all[static_cast<size_t>(subject)];
  data.registered = changed = true;
  data.doing -= one.shards;
  data.done += std::exchange(one.shards, 0);
  const auto exits = [&] { Schedule(What::kExit, random.Between(1ms, 2s), subject, 0); };
  if (one.state.leaving) return exits();
  if (!data.complete() && random.Chance(4)) {
    Trace(one.state.incarnation + " takes a cut line for the end");
    one.misled = true;
    return exits();
  }
  if (!data.complete() && random.Chance(2)) {
    Trace(one.state.incarnation + " stops early");
    one.stops_early = true;
    return exits();
  }
  if (data.todo > 0) {
    --data.todo;
    ++data.doing;
    one.shards = 1;
    Schedule(What::kShard, random.Between(1s, work / 4), subject);
  } else if (data.complete()) {
    exits();
  } else if (random.Chance(40)) {
    Trace(one.state.incarnation + " is told of the end while others have shards");
    one.misled = true;
    exits();
  } else {
    Schedule(What::kShard, random.Between(100ms, 5s), subject);
  }
}

void World::WorkDone(int32_t) {
  Trace("training is done");
  saved_ = work;
  trained_ = true;
  if (random.Chance(30)) Schedule(What::kFault, random.Between(1ms, 3s));
  if (random.Chance(30)) Schedule(What::kUser, random.Between(1ms, 3s));
  const std::vector<ReplicaId> drivers = Drivers();
  for (size_t i = 0; i < all.size(); ++i) {
    const Incarnation& one = all[i];
    if (!one.live) continue;
    const bool driver = Contains(drivers, one.state.id);
    const bool evaluator = one.state.id.role == Role::kEvaluator;
    if (!driver && !evaluator && (kind == Kind::kServers || lingers)) continue;
    Schedule(What::kExit, evaluator ? random.Between(1s, 20s) : random.Between(1ms, 2s),
             static_cast<int32_t>(i), 0);
  }
}

std::vector<int32_t> World::Running() const {
  std::vector<int32_t> out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].live && !all[i].silenced && all[i].state.phase == Phase::kRunning)
      out.push_back(static_cast<int32_t>(i));
  }
  return out;
}

bool World::AnyLive() const { return std::ranges::any_of(all, &Incarnation::live); }

}  // namespace backend::sim
