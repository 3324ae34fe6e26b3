#include "backend/cluster/turns.h"

#include <algorithm>

#include <fmt/core.h>

#include "backend/cluster/pod_group.h"
#include "core/endings.h"
#include "core/services.h"

namespace backend::cluster {
namespace {

using api::ReplicaId;
using base::Error;

// Counts of running replicas and the like change with every pod: told once in this time.
constexpr base::Duration kTellCountsEvery = std::chrono::seconds(1);
constexpr base::Duration kFirstPause = std::chrono::milliseconds(100);
constexpr base::Duration kLongestPause = std::chrono::seconds(60);
// For what must not linger: the kubelet sends SIGTERM and, a second later, SIGKILL. (0 would free
// the name while the process may still run.)
constexpr int64_t kNoGrace = 1;
// Turns begun before the answers are looked at again.
constexpr int kTurnsAtOnce = 256;
constexpr size_t kTriedKept = 4096;

base::Duration PauseAfter(int32_t failures) {
  return std::min(kLongestPause, kFirstPause * (int64_t{1} << std::min(failures - 1, 12)));
}

bool IsOurs(const api::Job& job) {
  const std::string& by = job.spec.run_policy.managed_by;
  return by.empty() || by == "kubeflow.org/training-operator";
}

// Something that deeds or people rely on has changed, not only counts of what runs.
bool MustTellNow(const api::JobStatus& before, api::JobStatus after) {
  after.seen = before.seen;
  after.replica_statuses = before.replica_statuses;
  after.progress = before.progress;
  return after != before;
}

// The server took the status and stored less than we sent.
bool Forgets(const StoredJob& stored, const api::JobStatus& sent) {
  return !sent.shape.empty() && stored.value->status.shape.empty();
}

bool WillNeverDo(const std::optional<Error>& error) {
  return error && error->kind() == base::ErrorKind::kInvalid;
}

}  // namespace

struct Turns::Turn {
  Key key;
  StoredJob stored;
  std::shared_ptr<const api::Job> job;  // of `stored`
  base::Time began;
  std::vector<Pod> pods;  // of the job's name, whoever owns them
  core::Observed observed;
  core::Decision decision;
  size_t open = 0;      // deeds that are not done
  Then then = nullptr;  // what follows when there are none
  std::optional<Error> error;
};

Turns::Turns(Knowledge knowledge, Pacer& pacer, Chronicle& chronicle, Settings settings)
    : know_(knowledge),
      chronicle_(chronicle),
      settings_(std::move(settings)),
      policy_{.end_leftovers = false, .clock_resolution = std::chrono::seconds(1)},
      deeds_(knowledge, pacer, chronicle, settings_) {}
Turns::~Turns() = default;

// ---- Whose turn it is

void Turns::Wake(const Key& key) {
  Entry& entry = entries_[key];
  if (entry.busy) {
    entry.again = true;
  } else {
    Queue(key, entry);
  }
}

void Turns::Queue(const Key& key, Entry& entry) {
  if (entry.queued) return;
  entry.queued = true;
  queue_.Push(key.name_space, key);
}

void Turns::WakeAt(const Key& key, Entry& entry, base::Time when) {
  if (entry.due && *entry.due <= when) return;
  if (entry.due) timers_.erase({*entry.due, key});
  entry.due = when;
  timers_.insert({when, key});
}

void Turns::Advance(base::Time now) {
  now_ = now;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const Key key = timers_.begin()->second;
    timers_.erase(timers_.begin());
    entries_[key].due.reset();
    Wake(key);
  }
  for (int i = 0; i < kTurnsAtOnce && !queue_.empty(); ++i) {
    const Key key = *queue_.Pop();
    Entry& entry = entries_[key];
    entry.queued = false;
    Begin(key, entry, now);
  }
}

std::optional<base::Time> Turns::next() const {
  if (!queue_.empty()) return now_;
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

Deeds::Done Turns::Part(const TurnPtr& turn) {
  ++turn->open;
  return [this, turn](std::optional<Error> error) {
    if (error) turn->error = std::move(error);
    if (--turn->open == 0 && turn->then) (this->*std::exchange(turn->then, nullptr))(turn);
  };
}

void Turns::Join(const TurnPtr& turn, Then then) {
  if (turn->open == 0) return (this->*then)(turn);
  turn->then = then;
}

// ---- Observe and decide

void Turns::Begin(const Key& key, Entry& entry, base::Time now) {
  if (entry.due) {
    timers_.erase({*entry.due, key});
    entry.due.reset();
  }
  const StoredJob* stored = know_.jobs.Find(key);
  const std::string uid = stored && !stored->deleting ? stored->uid : "";
  auto turn = std::make_shared<Turn>();
  turn->key = key;
  turn->began = now;
  for (const Pod* pod : know_.pods.Of(key)) turn->pods.push_back(*pod);
  const bool strangers =
      std::ranges::any_of(turn->pods, [&](const Pod& p) { return p.held && p.owner != uid; });
  if (!stored && !strangers) {
    entries_.erase(key);
    return;
  }
  entry.busy = true;
  // Pods that belong to no living job of this name. Who lives, the server itself must say: they
  // may be of a job that we have not heard of yet.
  if (strangers) {
    deeds_.ReadJob(key, Part(turn));
    return Join(turn, &Turns::LetGo);
  }
  if (stored->deleting || !IsOurs(*stored->value)) return Over(turn);
  turn->stored = *stored;
  turn->job = stored->value;
  for (const Pod& pod : turn->pods) {
    if (pod.owner == uid) turn->observed.replicas.push_back(pod.replica);
  }
  // Attempts that the job does not know of yet: ours is an old view of it.
  const bool behind = std::ranges::any_of(turn->observed.replicas, [&](const auto& r) {
    return r.attempt > turn->job->status.attempt;
  });
  if (behind && entry.looked != stored->version) {
    entry.looked = stored->version;
    return Reread(turn);
  }
  const std::string& why = stored->invalid.empty() ? entry.refusal : stored->invalid;
  if (!why.empty()) {
    Refuse(turn, why);
    return Publish(turn);
  }
  turn->decision = core::Reconcile(*turn->job, turn->observed, policy_, now);
  TellTroubles(turn, entry);
  turn->job->status.conditions.empty() ? TryOut(turn) : Publish(turn);
}

void Turns::LetGo(TurnPtr turn) {
  if (!turn->error) {
    const StoredJob* stored = know_.jobs.Find(turn->key);
    const std::string living = stored && !stored->deleting ? stored->uid : "";
    for (const Pod& pod : turn->pods) {
      if (pod.held && pod.owner != living) deeds_.Release(pod, Part(turn));
    }
    Entry& entry = entries_[turn->key];
    entry.confirmed = living;
    entry.again = true;
  }
  Join(turn, &Turns::Over);
}

// The job ends here, and so does what runs of it.
void Turns::Refuse(const TurnPtr& turn, const std::string& why) {
  turn->decision = {};
  turn->decision.status = core::Refused(*turn->job, why, turn->began);
  if (turn->decision.status != turn->job->status) {
    turn->decision.events.push_back(
        {true, "TFJobFailedValidation", turn->decision.status.conditions.back().message});
  }
  for (const core::ReplicaState& r : turn->observed.replicas) {
    if (!core::HasEnded(r)) turn->decision.actions.push_back(core::Stop{r.id, r.incarnation});
  }
}

// The server's own word on one pod of each role, before anything is made: a template that it will
// never take ends the job.
void Turns::TryOut(const TurnPtr& turn) {
  std::set<api::Role> roles;
  for (const core::Action& action : turn->decision.actions) {
    if (const auto* start = std::get_if<core::Start>(&action)) roles.insert(start->id.role);
  }
  for (api::Role role : roles) {
    const size_t hash = std::hash<std::string>()(
        turn->key.name_space + base::CompactJson(turn->job->spec.replicas.at(role).pod_template));
    if (tried_.contains(hash)) continue;
    deeds_.TryPod(
        turn->job, role, [this, turn, role, hash, done = Part(turn)](std::optional<Error> error) {
          if (WillNeverDo(error)) {
            entries_[turn->key].refusal = fmt::format("{}: {}", api::Name(role), error->text());
          } else if (!error) {
            if (tried_.size() >= kTriedKept) tried_.clear();
            tried_.insert(hash);
          }
          // Whatever else keeps it from being made now may be over soon.
          done(std::nullopt);
        });
  }
  Join(turn, &Turns::TriedOut);
}

void Turns::TriedOut(TurnPtr turn) {
  const std::string& refusal = entries_[turn->key].refusal;
  if (!refusal.empty()) {
    Refuse(turn, refusal);
    return Publish(turn);
  }
  for (const auto& [role, spec] : turn->job->spec.replicas) {
    const base::Json* pod = base::Find(spec.pod_template, "spec");
    if (!pod || !base::Find(*pod, "restartPolicy")) continue;
    turn->decision.events.push_back(
        {true, "SetPodTemplateRestartPolicy",
         "Restart policy in pod template will be overwritten by restart policy in replica spec"});
  }
  Publish(turn);
}

// ---- Publish

void Turns::Publish(const TurnPtr& turn) {
  Entry& entry = entries_[turn->key];
  const api::JobStatus& before = turn->job->status;
  const api::JobStatus& after = turn->decision.status;
  const base::Time told = entry.published + kTellCountsEvery;
  const bool tell = MustTellNow(before, after) || (before != after && turn->began >= told);
  if (before != after && !tell) WakeAt(turn->key, entry, told);
  if (!tell) {
    // Not a word is written in this turn, and maybe never was by us: is what we know the latest?
    const bool sure = entry.confirmed == turn->stored.uid;
    return turn->decision.actions.empty() || sure ? Perform(turn) : Reread(turn);
  }
  deeds_.Publish(turn->stored, after, Part(turn));
  Join(turn, &Turns::Published);
}

void Turns::Published(TurnPtr turn) {
  // Whether it was stored is unknown, or somebody else changed the job: look before the next turn.
  if (turn->error) return Reread(turn);
  Entry& entry = entries_[turn->key];
  entry.confirmed = turn->stored.uid;
  entry.published = now_;
  api::Job after = *turn->job;
  after.status = turn->decision.status;
  chronicle_.Published(turn->job->status, after);
  for (const core::Event& event : turn->decision.events) chronicle_.Tell(after, event);
  // What restarts rest on was not kept: to go on would be to forget and to repeat.
  const StoredJob* stored = know_.jobs.Find(turn->key);
  if (stored && stored->uid == turn->stored.uid && Forgets(*stored, after.status)) {
    const std::string text =
        "the TFJob definition in this cluster is another's and drops our part of the status: "
        "kubectl apply -f deploy/crd.yaml";
    chronicle_.Tell(after, {true, "TFJobDefinitionOutdated", text});
    turn->error = Error(base::ErrorKind::kUnavailable, text);
    return Over(turn);
  }
  Perform(turn);
}

// Nothing more is done in this turn: the job is looked at again, and another follows.
void Turns::Reread(const TurnPtr& turn) {
  turn->decision.look_again.reset();
  deeds_.ReadJob(turn->key, [this, turn, done = Part(turn)](std::optional<Error> error) {
    if (!error) {
      const StoredJob* stored = know_.jobs.Find(turn->key);
      Entry& entry = entries_[turn->key];
      entry.confirmed = stored ? stored->uid : "";
      entry.again = true;
    }
    done(std::move(error));
  });
  Join(turn, &Turns::Over);
}

// ---- Perform

void Turns::Perform(const TurnPtr& turn) {
  Clear(turn);
  for (const auto& [role, spec] : turn->job->spec.replicas) {
    for (int32_t i = 0; i < spec.replicas; ++i) {
      const ReplicaId id{role, i};
      if (know_.services.Find({turn->key.name_space, ReplicaName(*turn->job, id)})) continue;
      if (core::WishFor(*turn->job, turn->decision.status, turn->observed, id) ==
          core::ServiceWish::kMake) {
        deeds_.CreateService(turn->job, id, Part(turn));
      }
    }
  }
  if (!settings_.gang_scheduler.empty()) PrepareGroup(turn);
  Join(turn, &Turns::StartPods);
}

// What is to end or to go, and what we need not hold any more.
void Turns::Clear(const TurnPtr& turn) {
  const auto end = [&](const std::string& incarnation, auto grace_for) {
    const auto pod = std::ranges::find(turn->pods, incarnation, &Pod::uid);
    if (pod == turn->pods.end()) return;
    const std::optional<int64_t> grace = grace_for(*pod);
    // Asked already, for no longer than we would.
    if (pod->replica.deleting && (!grace || pod->grace <= *grace)) return;
    deeds_.DeletePod(turn->job, *pod, grace, Part(turn));
  };
  using Grace = std::optional<int64_t>;
  for (const core::Action& action : turn->decision.actions) {
    if (const auto* stop = std::get_if<core::Stop>(&action)) {
      end(stop->incarnation, [&](const Pod&) { return stop->graceful ? Grace() : kNoGrace; });
    } else if (const auto* remove = std::get_if<core::Remove>(&action)) {
      // Nothing of it runs: no kubelet needs to be waited for.
      end(remove->incarnation, [](const Pod& pod) { return pod.finished ? Grace(0) : Grace(); });
    } else if (std::holds_alternative<core::DeleteJob>(action)) {
      deeds_.DeleteJob(turn->job, Part(turn));
    }
  }
  const api::JobStatus& status = turn->decision.status;
  for (const Pod& pod : turn->pods) {
    if (pod.held && core::IsTakenIn(*turn->job, status, pod.replica)) {
      deeds_.Release(pod, Part(turn));
    }
  }
  for (const Service* service : know_.services.Of(turn->key)) {
    if (service->owner != turn->stored.uid || service->deleting) continue;
    if (core::WishFor(*turn->job, status, turn->observed, service->id) ==
        core::ServiceWish::kRemove) {
      deeds_.DeleteService(turn->job, *service, Part(turn));
    }
  }
}

// A group is there before its pods, and goes when none are wanted any more.
void Turns::PrepareGroup(const TurnPtr& turn) {
  const PodGroup* group = know_.pod_groups.Find(turn->key);
  const bool ours = group && group->owner == turn->stored.uid && !group->deleting;
  const bool wanted =
      !api::IsTerminal(turn->decision.status) && !turn->job->spec.run_policy.suspend;
  if (!wanted) {
    if (ours) deeds_.DeletePodGroup(turn->job, *group, Part(turn));
  } else if (!group || (ours && !IsUpToDate(*group, *turn->job, settings_))) {
    deeds_.EnsurePodGroup(turn->job, group, Part(turn));
  }
}

// After the services, so that every name can be looked up when the first process starts.
void Turns::StartPods(TurnPtr turn) {
  const PodGroup* group = know_.pod_groups.Find(turn->key);
  const bool admitted =
      settings_.gang_scheduler.empty() || (group && PodsMayStart(*group, settings_));
  if (!turn->error && admitted) {
    for (const core::Action& action : turn->decision.actions) {
      const auto* start = std::get_if<core::Start>(&action);
      if (!start) continue;
      // Its name may still be another's: of a job before this one, say. Its end will wake us.
      if (know_.pods.Find({turn->key.name_space, ReplicaName(*turn->job, start->id)})) continue;
      deeds_.CreatePod(turn->job, start->id, start->attempt,
                       [this, turn, done = Part(turn)](std::optional<Error> error) {
                         if (WillNeverDo(error)) entries_[turn->key].refusal = error->text();
                         done(std::move(error));
                       });
    }
  }
  Join(turn, &Turns::Over);
}

void Turns::Over(TurnPtr turn) {
  Entry& entry = entries_[turn->key];
  entry.busy = false;
  chronicle_.TurnOver(turn->error.has_value(), now_ - turn->began);
  if (turn->error) {
    WakeAt(turn->key, entry, now_ + PauseAfter(++entry.failures));
  } else {
    entry.failures = 0;
  }
  if (turn->decision.look_again) WakeAt(turn->key, entry, *turn->decision.look_again);
  if (std::exchange(entry.again, false)) Queue(turn->key, entry);
}

// Why pods do not start, once for each pod and reason.
void Turns::TellTroubles(const TurnPtr& turn, Entry& entry) {
  for (const Pod& pod : turn->pods) {
    if (pod.trouble.empty() || !entry.told.insert(pod.uid + pod.trouble).second) continue;
    chronicle_.Tell(*turn->job, {true, pod.trouble, pod.trouble_message});
  }
}

}  // namespace backend::cluster
