// Situations for the tests of the core, in few words: a job, what was seen of its replicas, and a
// small world that does what Reconcile says.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/reconcile.h"
#include "core/restart_policy.h"
#include "core/success_policy.h"

namespace core::testing {

using api::ReplicaId;
using api::RestartPolicy;
using api::Role;
using base::Duration;
using base::Time;
using namespace std::chrono_literals;

inline constexpr Time kStart{1'794'779'400s};

inline ReplicaId Id(Role role, int32_t index) { return {role, index}; }
inline constexpr ReplicaId kWorker0{Role::kWorker, 0}, kWorker1{Role::kWorker, 1},
    kWorker2{Role::kWorker, 2}, kChief0{Role::kChief, 0}, kPs0{Role::kPs, 0}, kPs1{Role::kPs, 1},
    kEvaluator0{Role::kEvaluator, 0};

struct Counts {
  int32_t chief = 0, ps = 0, worker = 0, evaluator = 0, master = 0;
};

inline api::Job MakeJob(Counts counts, RestartPolicy policy = RestartPolicy::kExitCode) {
  api::Job job;
  job.metadata = {.name = "mnist", .name_space = "ns", .uid = "u"};
  for (auto [role, n] :
       {std::pair(Role::kChief, counts.chief), std::pair(Role::kPs, counts.ps),
        std::pair(Role::kWorker, counts.worker), std::pair(Role::kEvaluator, counts.evaluator),
        std::pair(Role::kMaster, counts.master)}) {
    if (n > 0) job.spec.replicas[role] = {.replicas = n, .restart_policy = policy};
  }
  return job;
}

inline std::string Incarnation(ReplicaId id, int32_t attempt) {
  return api::ToString(id) + "@" + std::to_string(attempt);
}

inline ReplicaState Replica(ReplicaId id, Phase phase, int32_t attempt = 0) {
  ReplicaState r{.id = id,
                 .incarnation = Incarnation(id, attempt),
                 .attempt = attempt,
                 .phase = phase,
                 .started = kStart};
  if (HasEnded(r)) r.ending = Ending{.code = phase == Phase::kFailed ? 1 : 0, .when = kStart + 5s};
  return r;
}
inline ReplicaState Worker(int32_t index, Phase phase, int32_t attempt = 0) {
  return Replica({Role::kWorker, index}, phase, attempt);
}
inline ReplicaState Chief(Phase phase, int32_t attempt = 0) {
  return Replica(kChief0, phase, attempt);
}
inline ReplicaState Ps(int32_t index, Phase phase, int32_t attempt = 0) {
  return Replica({Role::kPs, index}, phase, attempt);
}
inline ReplicaState Evaluator(Phase phase, int32_t attempt = 0) {
  return Replica(kEvaluator0, phase, attempt);
}

// The same replica, ended with this status at this time; 128 and above means by a signal.
inline ReplicaState Exited(ReplicaState r, int32_t code, Time when = kStart + 5s) {
  r.phase = code == 0 ? Phase::kSucceeded : Phase::kFailed;
  r.ending = Ending{.code = code, .signal = code > 128 ? code - 128 : 0, .when = when};
  return r;
}
inline ReplicaState Disrupted(ReplicaState r, Time when = kStart + 5s) {
  r = Exited(std::move(r), 137, when);
  r.ending->disruption = "preempted";
  return r;
}
inline ReplicaState Saying(ReplicaState r, std::string line) {
  r.ending->last_lines = {std::move(line)};
  return r;
}
inline ReplicaState Silent(ReplicaState r) {
  r.silent = "node n1 does not answer";
  return r;
}
inline ReplicaState Deleting(ReplicaState r) {
  r.deleting = true;
  return r;
}

inline Observed Seen(std::vector<ReplicaState> replicas) {
  return {.replicas = std::move(replicas), .progress = {}, .data = {}};
}

// A status in which these have done their work.
inline api::JobStatus Completed(std::set<ReplicaId> completed) {
  api::JobStatus status;
  status.completed = std::move(completed);
  return status;
}

template <typename T>
std::vector<T> ActionsOf(const Decision& decision) {
  std::vector<T> out;
  for (const Action& action : decision.actions) {
    if (const T* one = std::get_if<T>(&action)) out.push_back(*one);
  }
  return out;
}
inline std::vector<ReplicaId> Started(const Decision& decision) {
  std::vector<ReplicaId> out;
  for (const Start& start : ActionsOf<Start>(decision)) out.push_back(start.id);
  return out;
}
inline std::vector<ReplicaId> StoppedIds(const Decision& decision) {
  std::vector<ReplicaId> out;
  for (const Stop& stop : ActionsOf<Stop>(decision)) out.push_back(stop.id);
  return out;
}

// "Created Running- Suspended": a minus marks status False.
inline std::string ConditionsOf(const api::JobStatus& status) {
  std::string out;
  for (const api::Condition& c : status.conditions) {
    out += (out.empty() ? "" : " ") + c.type + (c.status ? "" : "-");
  }
  return out;
}

// A job in a small world of its own: publishes, performs, and lets a test end replicas. Stops take
// effect at once.
struct World {
  explicit World(api::Job j) : job(std::move(j)) {}

  // One pass, its status published, its actions performed unless the controller crashes before.
  Decision Pass(bool perform = true) {
    Decision decision = Reconcile(job, observed, policy, now);
    job.status = api::DecodeStatus(api::EncodeStatus(decision.status));
    if (perform) Perform(decision);
    return decision;
  }
  void Perform(const Decision& decision) {
    for (const Action& action : decision.actions) {
      if (const auto* start = std::get_if<Start>(&action)) {
        ReplicaState r = Replica(start->id, Phase::kRunning, start->attempt);
        r.started = now;
        observed.replicas.push_back(std::move(r));
      } else if (const auto* stop = std::get_if<Stop>(&action)) {
        for (ReplicaState& r : observed.replicas) {
          if (r.incarnation != stop->incarnation || HasEnded(r)) continue;
          r = Exited(r, 143, now);
          r.ending->stopped = true;
        }
      } else if (const auto* remove = std::get_if<Remove>(&action)) {
        std::erase_if(observed.replicas,
                      [&](const auto& r) { return r.incarnation == remove->incarnation; });
      } else {
        deleted = true;
      }
    }
  }
  // Passes until nothing is asked for and nothing changes.
  World& Settle() {
    for (int i = 0; i < 20; ++i) {
      const api::JobStatus before = job.status;
      if (Pass().actions.empty() && job.status == before) return *this;
    }
    settles = false;
    return *this;
  }
  World& After(Duration duration) {
    now += duration;
    return *this;
  }
  // The running incarnation of a replica.
  ReplicaState& Of(ReplicaId id) {
    const auto it = std::ranges::find_if(observed.replicas,
                                         [&](const auto& r) { return r.id == id && !HasEnded(r); });
    CHECK(it != observed.replicas.end());
    return *it;
  }
  World& End(ReplicaId id, int32_t code, const char* last_words = "") {
    ReplicaState& r = Of(id);
    r = Saying(Exited(r, code, now), last_words);
    return *this;
  }
  // The same, after it has run for five seconds, any pause before that waited out.
  World& Crash(ReplicaId id, int32_t code = 137) {
    Settle();
    if (!Live().contains(id)) After(5min).Settle();
    return After(5s).End(id, code).Settle();
  }
  World& Disrupt(ReplicaId id) {
    ReplicaState& r = Of(id);
    r = Disrupted(r, now);
    return *this;
  }
  World& Vanish(ReplicaId id) {
    std::erase_if(observed.replicas, [&](const auto& r) { return r.id == id; });
    return *this;
  }
  // The attempts that live now, by replica.
  std::map<ReplicaId, int32_t> Live() const {
    std::map<ReplicaId, int32_t> out;
    for (const ReplicaState& r : observed.replicas) {
      if (!HasEnded(r)) out[r.id] = r.attempt;
    }
    return out;
  }

  api::Job job;
  Observed observed;
  Policy policy;
  Time now = kStart;
  bool deleted = false;
  bool settles = true;
};

}  // namespace core::testing
