#include "backend/cluster/turns.h"

#include <algorithm>

#include <fmt/core.h>

#include "backend/cluster/pod_group.h"
#include "core/dialect.h"
#include "core/wishes.h"

namespace backend::cluster {
namespace {

using base::Error;

// Counts of running replicas and the like change with every pod: told once in this time.
constexpr base::Duration kTellCounts = std::chrono::seconds(1);
// While requests that matter more wait for the server.
constexpr base::Duration kTellCountsBusy = std::chrono::seconds(10);
// How long a kubelet may take from the end of the containers to that of their pod.
constexpr base::Duration kLongestClosing = std::chrono::seconds(5);
constexpr base::Duration kFirstPause = std::chrono::milliseconds(100);
constexpr base::Duration kShortPause = std::chrono::seconds(1);
constexpr base::Duration kLongestPause = std::chrono::seconds(60);
// Kubernetes takes 40 s to 55 s to see that a node is silent, by its default settings.
constexpr base::Duration kNoticesSilence = std::chrono::seconds(90);
// Turns begun before the answers are looked at again.
constexpr int kTurnsAtOnce = 256;

// A server that is away is back after some seconds, most often, and the pacer keeps from asking it
// too much: the pauses of the first half minute are short.
base::Duration PauseAfter(int32_t failures, const Error& error) {
  constexpr int32_t kShort = 30;
  if (error.kind() == base::ErrorKind::kUnavailable) {
    if (failures <= kShort) return std::min(kShortPause, kFirstPause * failures);
    failures -= kShort - 4;
  }
  return std::min(kLongestPause, kFirstPause * (int64_t{1} << std::min(failures - 1, 12)));
}

// Something that deeds or people rely on has changed, not only counts of what runs.
bool MustTellNow(const api::JobStatus& before, api::JobStatus after) {
  after.seen = before.seen;
  after.replica_statuses = before.replica_statuses;
  after.progress = before.progress;
  // Only what is complete, or not, decides anything.
  if (after.shards && before.shards && after.shards->complete == before.shards->complete)
    after.shards = before.shards;
  return after != before;
}

// Of a master: how long until it is looked at again.
constexpr base::Duration kLookAtRunning = std::chrono::seconds(60);
constexpr base::Duration kLookAtWaiting = std::chrono::seconds(10);
constexpr base::Duration kLookAtGoing = std::chrono::seconds(1);

// The server took the status and stored less than we sent.
bool Forgets(const StoredJob& stored, const api::JobStatus& sent) {
  return !sent.shape.empty() && stored.value->status.shape.empty();
}

}  // namespace

Turns::Turns(Knowledge knowledge, Pacer& pacer, Chronicle& chronicle, Settings settings,
             DataMaster* data)
    : know_(knowledge),
      pacer_(pacer),
      chronicle_(chronicle),
      settings_(std::move(settings)),
      policy_{.end_leftovers = false,
              .clock_resolution = std::chrono::seconds(1),
              .notices_silence = kNoticesSilence,
              .in_pods = true},
      data_(data),
      deeds_(knowledge, pacer, chronicle, settings_),
      tryouts_(deeds_, [this](const Key& key) { Wake(key); }) {}
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
  const StoredJob* stored = know_.jobs.Find(key);
  const bool is_new = stored && stored->value->status.conditions.empty();
  (is_new ? new_ : begun_).Push(key.name_space, key);
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
  for (const Key& key : gangs_.Advance(now)) Wake(key);
  BeginFrom(begun_, [&](const auto& lane) { return pacer_.HasRoomFirst(lane); });
  BeginFrom(new_, [&](const auto& lane) { return pacer_.HasRoom(lane); });
}

template <typename HasRoom>
void Turns::BeginFrom(FairQueue<Key>& queue, HasRoom has_room) {
  for (int i = 0; i < kTurnsAtOnce; ++i) {
    const auto key = queue.PopFrom(has_room);
    if (!key) return;
    Entry& entry = entries_[*key];
    entry.queued = false;
    Begin(*key, entry, now_);
  }
}

std::optional<base::Time> Turns::next() const {
  // A lane without room gets some as answers come.
  if (begun_.HasAnyFrom([&](const auto& lane) { return pacer_.HasRoomFirst(lane); }) ||
      new_.HasAnyFrom([&](const auto& lane) { return pacer_.HasRoom(lane); })) {
    return now_;
  }
  std::optional<base::Time> first = gangs_.next();
  if (!timers_.empty()) first = std::min(first.value_or(base::Time::max()), timers_.begin()->first);
  return first;
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
  // Nothing that is known of an earlier job of this name holds for this one.
  if (stored && entry.uid != stored->uid) {
    entry = {.queued = entry.queued,
             .again = entry.again,
             .uid = stored->uid,
             .confirmed = std::move(entry.confirmed),
             .fresh = entry.fresh};
  }
  const std::string uid = stored && !stored->deleting ? stored->uid : "";
  auto turn = std::make_shared<Turn>();
  turn->key = key;
  turn->began = now;
  turn->fresh = std::exchange(entry.fresh, false);
  for (const Pod* pod : know_.pods.Of(key)) {
    if (Manages(*pod)) turn->pods.push_back(*pod);
  }
  const bool strangers = std::ranges::any_of(turn->pods, [&](const Pod& p) {
    return (p.held && !IsOwned(p, uid)) || (stored && IsOrphan(p, *stored));
  });
  if (!stored) gangs_.Forget(key);
  if (!stored && !strangers) {
    entries_.erase(key);
    return;
  }
  entry.busy = true;
  // Pods that belong to no living job of this name. Who lives, the server itself must say: they
  // may be of a job that we have not heard of yet.
  if (strangers) {
    deeds_.LookUpJob(key, Part(turn));
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
  if (!stored->invalid.empty() || entry.refusal.AppliesTo(*turn->job)) {
    Refuse(turn, stored->invalid.empty() ? entry.refusal.why : stored->invalid);
    return Publish(turn);
  }
  if (turn->job->extensions.elastic && !data_) {
    // What its master publishes counts as what we do.
    const auto before = std::exchange(entry.told, turn->job->status);
    if (before && *before != *entry.told) chronicle_.Published(*before, *turn->job);
    if (!core::IsOver(*turn->job)) return GiveToMaster(turn, entry);
    entry.given.clear();  // in another life to another master
  }
  // Whoever makes anything has published a status before: a job without one has nothing yet.
  const bool blank = turn->job->status.conditions.empty();
  const auto covers = [&](kube::Version version) { return blank || version >= stored->version; };
  turn->pods_current = covers(std::max(know_.pods.heard(), entry.pods_at));
  turn->services_current = covers(std::max(know_.services.heard(), entry.services_at));
  if (data_ && turn->job->extensions.elastic) {
    // Who is missing from an old view would be taken for dead, and its call for data cut.
    if (!turn->pods_current) return Survey(turn);
    if (!entry.members) entry.members = std::make_unique<Members>(*data_);
    entry.members->See(*turn->job, turn->observed);
  }
  turn->decision = Decide(*turn, entry);
  if (auto& shards = turn->decision.status.shards; shards && entry.members)
    shards->replicas = entry.members->Shares();
  if (const auto next = entry.members ? entry.members->next() : std::nullopt) {
    WakeAt(key, entry, std::max(*next, now));
  }
  turn->without_service = MissingServices(*turn);
  if (!turn->decision.missed.empty() && entry.missed != stored->version) return LookFor(turn);
  if (NeedsSurvey(*turn)) return Survey(turn);
  entry.behind.reset();
  if (const auto again = entry.troubles.Tell(*turn->job, turn->pods, now, chronicle_)) {
    WakeAt(key, entry, *again);
  }
  if (IsTooEarly(*turn, entry)) return Over(turn);
  turn->job->status.conditions.empty() ? TryOut(turn) : Publish(turn);
}

// Lets the job back off or return if it is due (gangs.h), then returns the core's decision.
core::Decision Turns::Decide(const Turn& turn, Entry& entry) {
  const base::Time now = turn.began;
  const auto start = gangs_.TakeStart(turn.key);
  api::Job changed;
  std::vector<core::Event> events;
  if (start && *start > now) {
    changed = *turn.job;
    const std::string why = fmt::format(
        "TFJob {} backs off: it holds only some of the places that it needs, and so does an older "
        "job. Its pods are deleted, and created again in {} s at the latest.",
        turn.key.name, std::chrono::ceil<std::chrono::seconds>(*start - now).count());
    changed.status = core::BackedOff(changed, why, *start, now);
    events.push_back({false, "TFJobBackedOff", why});
    entry.backed_off = true;
  } else if (start && entry.backed_off) {
    changed = *turn.job;
    changed.status.gang.not_before = std::min(changed.status.gang.not_before, now);
  }
  const api::Job& job = changed.metadata.name.empty() ? *turn.job : changed;
  core::Decision out = core::Reconcile(job, turn.observed, policy_, now);
  out.events.insert(out.events.begin(), events.begin(), events.end());
  if (settings_.gang_scheduler.empty()) {
    entry.backed_off &= out.status.gang.not_before > now;
    gangs_.Observe(turn.key, GangOf(turn.key, job, turn.pods), entry.backed_off, now);
  }
  return out;
}

// Over, and another turn at once unless something went wrong.
void Turns::Again(TurnPtr turn) {
  turn->decision.look_again.reset();
  if (!turn->error) entries_[turn->key].again = true;
  Over(turn);
}

// Who waits for a success reads the logs next, and the SDK of training-operator has none of a pod
// that is Pending. A kubelet tells the end of a container first and that of its pod a moment later,
// so a success waits that moment. Nothing else is done meanwhile: what is decided is decided.
bool Turns::IsTooEarly(const Turn& turn, Entry& entry) {
  const bool succeeds =
      api::Has(turn.decision.status, "Succeeded") && !api::IsTerminal(turn.job->status);
  const bool closing = std::ranges::any_of(turn.pods, [&](const Pod& pod) {
    return pod.owner == turn.stored.uid && pod.closing &&
           pod.replica.phase == core::Phase::kSucceeded;
  });
  if (!succeeds || !closing) {
    entry.succeeds.reset();
    return false;
  }
  if (!entry.succeeds) entry.succeeds = turn.began;
  const base::Time latest = *entry.succeeds + kLongestClosing;
  if (turn.began >= latest) return false;
  WakeAt(turn.key, entry, latest);
  return true;
}

// The job ends here, and so does what runs of it.
void Turns::Refuse(const TurnPtr& turn, const std::string& why) {
  turn->decision = {};
  turn->without_service.clear();
  turn->decision.status = core::Refused(*turn->job, why, turn->began);
  if (turn->decision.status != turn->job->status) {
    turn->decision.events.push_back(
        {true, "TFJobFailedValidation", turn->decision.status.conditions.back().message});
  }
  for (const core::ReplicaState& r : turn->observed.replicas) {
    if (!core::HasEnded(r)) turn->decision.actions.push_back(core::Stop{r.id, r.incarnation});
  }
}

// ---- Elastic jobs

void Turns::GiveToMaster(const TurnPtr& turn, Entry& entry) {
  if (entry.given == turn->stored.uid && turn->began < entry.master_due) {
    WakeAt(turn->key, entry, entry.master_due);
    return Over(turn);
  }
  deeds_.EnsureMaster(
      turn->job, [this, turn](const MasterLook& look) { LookedAtMaster(turn, look); },
      [this, turn, done = Part(turn)](std::optional<Error> error) {
        Entry& its = entries_[turn->key];
        // What is left of a job of the same name before this one goes by itself.
        const bool passes = error && error->kind() == base::ErrorKind::kTaken && its.failures < 3;
        if (error && !passes) {
          chronicle_.Tell(*turn->job,
                          {true, "FailedCreateMaster", "Error creating: " + error->text()});
        }
        if (WillNeverDo(error)) {
          its.refusal = {turn->job, "its master: " + error->text()};
          its.again = true;
        }
        done(std::move(error));
      });
  Join(turn, &Turns::Over);
}

void Turns::LookedAtMaster(const TurnPtr& turn, const MasterLook& look) {
  Entry& entry = entries_[turn->key];
  entry.given = turn->stored.uid;
  // What it does the job's status says; only its absence would go unnoticed.
  entry.master_due = now_ + (look.state == MasterLook::kRuns   ? kLookAtRunning
                             : look.state == MasterLook::kGoes ? kLookAtGoing
                                                               : kLookAtWaiting);
  WakeAt(turn->key, entry, entry.master_due);
  if (look.state == MasterLook::kMade) {
    chronicle_.Tell(*turn->job, {false, "SuccessfulCreateMaster",
                                 fmt::format("Created master: {} keeps this elastic job and "
                                             "hands out its data",
                                             core::MasterName(*turn->job))});
  }
  entry.troubles.Tell(*turn->job, look.pods, now_, chronicle_);
}

// The server's own word on one pod of each role, before anything is made: a template that it will
// never take ends the job.
void Turns::TryOut(const TurnPtr& turn) {
  std::set<api::Role> roles;
  for (const core::Action& action : turn->decision.actions) {
    if (const auto* start = std::get_if<core::Start>(&action)) roles.insert(start->id.role);
  }
  if (std::ranges::any_of(roles, [&](auto role) { return tryouts_.Waits(*turn->job, role); })) {
    return Over(turn);
  }
  for (api::Role role : roles) {
    tryouts_.Try(
        turn->job, role, [this, turn, role, done = Part(turn)](std::optional<Error> error) {
          if (WillNeverDo(error)) {
            entries_[turn->key].refusal = {
                turn->job, fmt::format("{}: {}", api::Name(role), error->text())};
          }
          // Whatever else keeps it from being made now may be over soon.
          done(std::nullopt);
        });
  }
  Join(turn, &Turns::TriedOut);
}

void Turns::TriedOut(TurnPtr turn) {
  const Refusal& refusal = entries_[turn->key].refusal;
  if (refusal.AppliesTo(*turn->job)) {
    Refuse(turn, refusal.why);
    return Publish(turn);
  }
  for (const auto& [role, spec] : turn->job->spec.replicas) {
    const base::Json* pod = base::Find(spec.pod_template, "spec");
    if (!pod || !base::Find(*pod, "restartPolicy")) continue;
    turn->decision.events.push_back(
        {true, "SetPodTemplateRestartPolicy",
         "Restart policy in pod template will be overwritten by restart policy in replica spec"});
  }
  if (!settings_.gang_scheduler.empty() && NamesAnotherScheduler(*turn->job, settings_)) {
    turn->decision.events.push_back({true, "SetPodTemplateSchedulerName",
                                     "Another scheduler is specified when gang-scheduling is "
                                     "enabled and it will not be overwritten"});
  }
  Publish(turn);
}

// ---- Publish

void Turns::Publish(const TurnPtr& turn) {
  Entry& entry = entries_[turn->key];
  const api::JobStatus& before = turn->job->status;
  const api::JobStatus& after = turn->decision.status;
  const base::Time told = entry.published + (pacer_.IsBusy() ? kTellCountsBusy : kTellCounts);
  const bool tell = MustTellNow(before, after) || (before != after && turn->began >= told);
  if (before != after && !tell) WakeAt(turn->key, entry, std::min(told, turn->began + kTellCounts));
  if (!tell) {
    // Not a word is written in this turn, and maybe never was by us: is what we know the latest?
    const bool sure = entry.confirmed == turn->stored.uid;
    // A service that is missing may have gone with its job, whose end we have not heard of yet.
    // And one that is to go may be wanted again: the job may have been resumed.
    const bool doubt = !turn->fresh && (!turn->without_service.empty() || RemovesServices(*turn));
    return (turn->decision.actions.empty() || sure) && !doubt ? Perform(turn) : Reread(turn);
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
  const StoredJob* stored = know_.jobs.Find(turn->key);
  // What we have said ourselves makes our view no older than it was.
  const bool ours = stored && stored->value->status == after.status;
  if (ours && turn->pods_current) entry.pods_at = stored->version;
  if (ours && turn->services_current) entry.services_at = stored->version;
  chronicle_.Published(turn->job->status, after);
  for (const core::Event& event : turn->decision.events) chronicle_.Tell(after, event);
  // What restarts rest on was not kept: to go on would be to forget and to repeat.
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
  deeds_.LookUpJob(turn->key, [this, turn, done = Part(turn)](std::optional<Error> error) {
    if (!error) {
      const StoredJob* stored = know_.jobs.Find(turn->key);
      Entry& entry = entries_[turn->key];
      entry.confirmed = stored ? stored->uid : "";
      entry.fresh = entry.again = true;
    }
    done(std::move(error));
  });
  Join(turn, &Turns::Over);
}

void Turns::Over(TurnPtr turn) {
  Entry& entry = entries_[turn->key];
  entry.busy = false;
  for (const core::Event& event : turn->creations->TakeEvents()) chronicle_.Tell(*turn->job, event);
  chronicle_.TurnOver(turn->error.has_value(), now_ - turn->began);
  if (turn->error) {
    WakeAt(turn->key, entry, now_ + PauseAfter(++entry.failures, *turn->error));
  } else {
    entry.failures = 0;
  }
  if (turn->decision.look_again) WakeAt(turn->key, entry, *turn->decision.look_again);
  if (std::exchange(entry.again, false)) Queue(turn->key, entry);
}

}  // namespace backend::cluster
