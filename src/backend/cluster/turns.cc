#include "backend/cluster/turns.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
#include "core/endings.h"
#include "core/services.h"
#include "kube/api.h"

namespace backend::cluster {
namespace {

using api::ReplicaId;
using base::Error;
using base::Json;
using base::JsonObject;
using base::Result;
using kube::Request;
using kube::Response;

constexpr std::string_view kPods = "pods";
constexpr std::string_view kServices = "services";
constexpr const char* kMergePatch = "application/merge-patch+json";
constexpr const char* kStrategicPatch = "application/strategic-merge-patch+json";
constexpr const char* kJson = "application/json";

// Counts of running replicas and the like change with every pod: told once in this time.
constexpr base::Duration kTellCountsEvery = std::chrono::seconds(1);
constexpr base::Duration kFirstPause = std::chrono::milliseconds(100);
constexpr base::Duration kLongestPause = std::chrono::seconds(60);
// For what must not linger: the kubelet sends SIGTERM and, a second later, SIGKILL. (0 would free
// the name while the process may still run.)
constexpr int64_t kNoGrace = 1;
constexpr size_t kTriedKept = 4096;

base::Duration PauseAfter(int32_t failures) {
  return std::min(kLongestPause, kFirstPause * (int64_t{1} << std::min(failures - 1, 12)));
}

std::string JobPath(const Key& key, std::string_view subresource = "") {
  return kube::Path(api::kApiVersion, "tfjobs", key.name_space, key.name, subresource);
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

// The status as it is stored: with the selector that the scale subresource points to.
Json Stored(const api::Job& job, const api::JobStatus& status, bool with_selector) {
  Json out = api::EncodeStatus(status);
  JsonObject& counts = out.get_object()["replicaStatuses"].get_object();
  if (Json* workers = counts.if_contains("Worker"); workers && with_selector) {
    workers->get_object()["selector"] = SelectorOf(job, api::Role::kWorker);
  }
  return out;
}

bool WillNeverDo(const Error& error) { return error.kind() == base::ErrorKind::kInvalid; }

}  // namespace

struct Turns::Turn {
  Key key;
  std::shared_ptr<const api::Job> job;
  kube::Version version = 0;
  bool tells_selector = false;
  base::Time began;
  core::Observed observed;
  core::Decision decision;
  std::vector<Pod> pods;  // as observed
  size_t open = 0;        // requests without an answer yet
  Then then = nullptr;    // what follows when there are none
  std::optional<Error> error;
};

Turns::Turns(Knowledge knowledge, Pacer& pacer, Chronicle& chronicle, Settings settings)
    : know_(knowledge),
      pacer_(pacer),
      chronicle_(chronicle),
      settings_(std::move(settings)),
      policy_{.end_leftovers = false, .clock_resolution = std::chrono::seconds(1)},
      alive_(std::make_shared<bool>(true)) {}
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
  // Requests come before new turns: what is decided now is carried out soon.
  for (int i = 0; i < 256 && !queue_.empty() && pacer_.waiting() < 4096; ++i) {
    const Key key = *queue_.Pop();
    Entry& entry = entries_[key];
    entry.queued = false;
    Begin(key, entry, now);
  }
}

std::optional<base::Time> Turns::next() const {
  if (!queue_.empty() && pacer_.waiting() < 4096) return now_;
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

// ---- Requests of a turn

void Turns::Send(const TurnPtr& turn, Pacer::Make make,
                 std::move_only_function<void(Result<Response>)> answer) {
  ++turn->open;
  pacer_.Submit(turn->key.name_space, std::move(make),
                [this, alive = std::weak_ptr(alive_), turn,
                 answer = std::move(answer)](Result<Response> response) mutable {
                  if (alive.expired()) return;
                  answer(std::move(response));
                  if (--turn->open == 0 && turn->then) {
                    (this->*std::exchange(turn->then, nullptr))(turn);
                  }
                });
}

void Turns::Join(const TurnPtr& turn, Then then) {
  if (turn->open == 0) return (this->*then)(turn);
  turn->then = then;
}

// ---- The turn

void Turns::Begin(const Key& key, Entry& entry, base::Time now) {
  if (entry.due) {
    timers_.erase({*entry.due, key});
    entry.due.reset();
  }
  const StoredJob* stored = know_.jobs.Find(key);
  const std::string uid = stored && !stored->deleting ? stored->uid : "";
  const std::vector<const Pod*> pods = know_.pods.Of(key);
  auto turn = std::make_shared<Turn>();
  turn->key = key;
  turn->began = now;
  const bool strangers =
      std::ranges::any_of(pods, [&](const Pod* p) { return p->held && p->owner != uid; });
  if (!stored && !strangers) {
    entries_.erase(key);
    return;
  }
  entry.busy = true;
  ++busy_;
  for (const Pod* pod : pods) turn->pods.push_back(*pod);
  if (strangers) return LetGo(turn);
  if (stored->deleting || !IsOurs(*stored->value)) return Over(turn);
  turn->job = stored->value;
  turn->version = stored->version;
  turn->tells_selector = stored->tells_selector;
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
    turn->decision.status = core::Refused(*turn->job, why, now);
    if (turn->decision.status != turn->job->status) {
      turn->decision.events.push_back(
          {true, "TFJobFailedValidation", turn->decision.status.conditions.back().message});
    }
    for (const auto& r : turn->observed.replicas) {
      if (!core::HasEnded(r)) turn->decision.actions.push_back(core::Stop{r.id, r.incarnation});
    }
    return Publish(turn);
  }
  turn->decision = core::Reconcile(*turn->job, turn->observed, policy_, now);
  TellTroubles(turn, entry);
  turn->job->status.conditions.empty() ? TryOut(turn) : Publish(turn);
}

// Pods that belong to no living job of this name. Who lives, the server itself must say: the pods
// may be of a job that we have not heard of yet.
void Turns::LetGo(const TurnPtr& turn) {
  Send(
      turn, [path = JobPath(turn->key)] { return Request{.path = path}; },
      [this, turn](Result<Response> response) {
        std::string living;
        if (!response) {
          turn->error = response.error();
          return;
        }
        if (auto error = kube::ErrorOf(*response)) {
          if (error->kind() != base::ErrorKind::kNotFound) {
            turn->error = std::move(*error);
            return;
          }
          if (const StoredJob* stored = know_.jobs.Find(turn->key)) {
            know_.jobs.Drop(turn->key, stored->uid, stored->version);
          }
        } else if (auto object = base::ParseJson(response->body)) {
          know_.jobs.Apply(*object);
          const StoredJob* stored = know_.jobs.Find(turn->key);
          if (stored && !stored->deleting) living = stored->uid;
        }
        for (const Pod& pod : turn->pods) {
          if (pod.held && pod.owner != living) Release(turn, pod);
        }
      });
  Join(turn, &Turns::Over);
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
    Send(
        turn,
        [this, turn, role] {
          return Request{"POST", kube::Path("v1", kPods, turn->key.name_space) + "?dryRun=All",
                         kJson, base::CompactJson(MakePod(*turn->job, {role, 0}, 0, settings_))};
        },
        [this, turn, role, hash](Result<Response> response) {
          if (!response) return;
          auto error = kube::ErrorOf(*response);
          if (!error) {
            if (tried_.size() >= kTriedKept) tried_.clear();
            tried_.insert(hash);
          } else if (WillNeverDo(*error)) {
            entries_[turn->key].refusal = fmt::format("{}: {}", api::Name(role), error->text());
          }
        });
  }
  Join(turn, &Turns::TriedOut);
}

void Turns::TriedOut(TurnPtr turn) {
  const std::string& refusal = entries_[turn->key].refusal;
  if (!refusal.empty()) {
    turn->decision = {};
    turn->decision.status = core::Refused(*turn->job, refusal, turn->began);
    turn->decision.events.push_back(
        {true, "TFJobFailedValidation", turn->decision.status.conditions.back().message});
  } else {
    for (const auto& [role, spec] : turn->job->spec.replicas) {
      const Json* pod = base::Find(spec.pod_template, "spec");
      if (!pod || !base::Find(*pod, "restartPolicy")) continue;
      turn->decision.events.push_back({true, "SetPodTemplateRestartPolicy",
                                       "Restart policy in pod template will be overwritten by "
                                       "restart policy in replica spec"});
    }
  }
  Publish(turn);
}

void Turns::Publish(const TurnPtr& turn) {
  Entry& entry = entries_[turn->key];
  const api::JobStatus& before = turn->job->status;
  const api::JobStatus& after = turn->decision.status;
  const base::Time told = entry.published + kTellCountsEvery;
  const bool tell = MustTellNow(before, after) || (before != after && turn->began >= told);
  if (before != after && !tell) WakeAt(turn->key, entry, told);
  if (!tell) {
    // Not a word was written in this turn, and maybe never by us: is what we know the latest?
    const bool sure = entry.confirmed == turn->job->metadata.uid;
    return turn->decision.actions.empty() || sure ? Perform(turn) : Reread(turn);
  }
  const Json had = before == api::JobStatus() ? Json(JsonObject())
                                              : Stored(*turn->job, before, turn->tells_selector);
  const Json patch =
      JsonObject{{"metadata", JsonObject{{"resourceVersion", std::to_string(turn->version)}}},
                 {"status", kube::MergePatch(had, Stored(*turn->job, after, true))}};
  Send(
      turn,
      [path = JobPath(turn->key, "status"), body = base::CompactJson(patch)] {
        return Request{"PATCH", path, kMergePatch, body};
      },
      [this, turn](Result<Response> response) {
        if (!response) {
          turn->error = response.error();
        } else if (auto error = kube::ErrorOf(*response)) {
          turn->error = std::move(*error);
        } else if (auto object = base::ParseJson(response->body)) {
          know_.jobs.Apply(*object);
          Entry& now = entries_[turn->key];
          now.confirmed = turn->job->metadata.uid;
          now.published = now_;
        }
      });
  Join(turn, &Turns::Published);
}

void Turns::Published(TurnPtr turn) {
  // Whether it was stored is unknown, or somebody else changed the job: look before the next turn.
  if (turn->error) return Reread(turn);
  api::Job after = *turn->job;
  after.status = turn->decision.status;
  chronicle_.Published(turn->job->status, after);
  for (const core::Event& event : turn->decision.events) chronicle_.Tell(after, event);
  Perform(turn);
}

void Turns::Reread(const TurnPtr& turn) {
  turn->decision.actions.clear();
  turn->decision.look_again.reset();
  Send(
      turn, [path = JobPath(turn->key)] { return Request{.path = path}; },
      [this, turn](Result<Response> response) {
        if (!response) {
          turn->error = response.error();
          return;
        }
        if (auto error = kube::ErrorOf(*response)) {
          const StoredJob* stored = know_.jobs.Find(turn->key);
          if (error->kind() == base::ErrorKind::kNotFound && stored) {
            know_.jobs.Drop(turn->key, stored->uid, stored->version);
          } else {
            turn->error = std::move(*error);
          }
        } else if (auto object = base::ParseJson(response->body)) {
          know_.jobs.Apply(*object);
          Entry& entry = entries_[turn->key];
          if (const StoredJob* stored = know_.jobs.Find(turn->key)) entry.confirmed = stored->uid;
          entry.again = true;
        }
      });
  Join(turn, &Turns::Over);
}

// ---- Deeds

void Turns::Perform(const TurnPtr& turn) {
  const api::JobStatus& status = turn->decision.status;
  for (const core::Action& action : turn->decision.actions) {
    const auto pod_of = [&](const std::string& incarnation) -> const Pod* {
      const auto it = std::ranges::find(turn->pods, incarnation, &Pod::uid);
      return it == turn->pods.end() ? nullptr : &*it;
    };
    if (const auto* stop = std::get_if<core::Stop>(&action)) {
      if (const Pod* pod = pod_of(stop->incarnation))
        Stop(turn, *pod, stop->graceful ? -1 : kNoGrace);
    } else if (const auto* remove = std::get_if<core::Remove>(&action)) {
      if (const Pod* pod = pod_of(remove->incarnation)) Stop(turn, *pod, pod->finished ? 0 : -1);
    } else if (std::holds_alternative<core::DeleteJob>(action)) {
      DeleteJob(turn);
    }
  }
  for (const Pod& pod : turn->pods) {
    if (pod.held && core::IsTakenIn(*turn->job, status, pod.replica)) Release(turn, pod);
  }
  for (const Service* service : know_.services.Of(turn->key)) {
    if (service->owner != turn->job->metadata.uid || service->deleting) continue;
    if (core::WishFor(*turn->job, status, turn->observed, service->id) ==
        core::ServiceWish::kRemove) {
      DeleteService(turn, *service);
    }
  }
  for (const auto& [role, spec] : turn->job->spec.replicas) {
    for (int32_t i = 0; i < spec.replicas; ++i) {
      const ReplicaId id{role, i};
      const Key key{turn->key.name_space, ReplicaName(*turn->job, id)};
      if (know_.services.Find(key)) continue;
      if (core::WishFor(*turn->job, status, turn->observed, id) != core::ServiceWish::kMake) break;
      Create(turn, kServices, key.name, [turn, id] { return MakeService(*turn->job, id); });
    }
  }
  Join(turn, &Turns::StartPods);
}

// After the services, so that every name can be looked up when the first process starts.
void Turns::StartPods(TurnPtr turn) {
  if (!turn->error) {
    for (const core::Action& action : turn->decision.actions) {
      const auto* start = std::get_if<core::Start>(&action);
      if (!start) continue;
      const Key key{turn->key.name_space, ReplicaName(*turn->job, start->id)};
      // Its name may still be another's: of a job before this one, say. Its end will wake us.
      if (know_.pods.Find(key)) continue;
      Create(turn, kPods, key.name, [this, turn, start = *start] {
        return MakePod(*turn->job, start.id, start.attempt, settings_);
      });
    }
  }
  Join(turn, &Turns::Over);
}

void Turns::Over(TurnPtr turn) {
  Entry& entry = entries_[turn->key];
  entry.busy = false;
  --busy_;
  chronicle_.TurnOver(turn->error.has_value(), now_ - turn->began);
  if (turn->error) {
    WakeAt(turn->key, entry, now_ + PauseAfter(++entry.failures));
  } else {
    entry.failures = 0;
  }
  if (turn->decision.look_again) WakeAt(turn->key, entry, *turn->decision.look_again);
  if (std::exchange(entry.again, false)) Queue(turn->key, entry);
}

void Turns::Create(const TurnPtr& turn, std::string_view resource, const std::string& name,
                   std::function<Json()> make) {
  const bool pods = resource == kPods;
  const std::string what = pods ? "Pod" : "Service";
  const std::string path = kube::Path("v1", resource, turn->key.name_space);
  Send(
      turn,
      [path, make = std::move(make)] {
        return Request{"POST", path, kJson, base::CompactJson(make())};
      },
      [this, turn, pods, what, path, name](Result<Response> response) {
        if (!response) {
          turn->error = response.error();
          return;
        }
        const auto error = kube::ErrorOf(*response);
        if (!error) {
          Learn(pods, response->body);
          chronicle_.Tell(*turn->job, {false, "SuccessfulCreate" + what,
                                       fmt::format("Created {}: {}", base::Lower(what), name)});
        } else if (error->kind() == base::ErrorKind::kTaken) {
          // Made by us, and the answer was lost; or by another operator; or it is a stranger's.
          LookAt(turn, pods, path + "/" + name, *error);
        } else {
          if (pods && WillNeverDo(*error)) entries_[turn->key].refusal = error->text();
          chronicle_.Tell(*turn->job,
                          {true, "FailedCreate" + what, "Error creating: " + error->text()});
          turn->error = *error;
        }
      });
}

void Turns::LookAt(const TurnPtr& turn, bool pods, const std::string& path, const Error& taken) {
  Send(
      turn, [path] { return Request{.path = path}; },
      [this, turn, pods, taken](Result<Response> response) {
        if (!response) {
          turn->error = response.error();
        } else if (auto error = kube::ErrorOf(*response)) {
          turn->error = std::move(*error);
        } else if (!Learn(pods, response->body)) {
          chronicle_.Tell(*turn->job, {true, pods ? "FailedCreatePod" : "FailedCreateService",
                                       "Error creating: " + taken.text()});
          turn->error = taken;
        }
      });
}

bool Turns::Learn(bool pods, const std::string& body) {
  const auto object = base::ParseJson(body);
  if (!object) return false;
  if (pods) {
    know_.pods.Apply(*object);
    return ReadPod(*object).has_value();
  }
  know_.services.Apply(*object);
  return ReadService(*object).has_value();
}

void Turns::Stop(const TurnPtr& turn, const Pod& pod, int64_t grace) {
  // Asked already, for no longer than we would.
  if (pod.grace >= 0 && (grace < 0 || pod.grace <= grace)) return;
  JsonObject options = {{"preconditions", JsonObject{{"uid", pod.uid}}}};
  if (grace >= 0) options["gracePeriodSeconds"] = grace;
  Delete(turn, kube::Path("v1", kPods, pod.key.name_space, pod.key.name), std::move(options),
         [this, turn, pod](const Json* object) {
           if (!object) return know_.pods.Drop(pod.key, pod.uid, pod.version);
           TookAway(*object, pod);
           if (pod.grace < 0) {
             chronicle_.Tell(*turn->job,
                             {false, "SuccessfulDeletePod", "Deleted pod: " + pod.key.name});
           }
         });
}

// What the server says of a pod after a deed of ours: there still, or gone with its last finalizer.
void Turns::TookAway(const Json& object, const Pod& pod) {
  const Json* metadata = base::Find(object, "metadata");
  const Json* finalizers = metadata ? base::Find(*metadata, "finalizers") : nullptr;
  const bool free = !finalizers || !finalizers->is_array() || finalizers->get_array().empty();
  const bool gone = metadata && free && base::Find(*metadata, "deletionTimestamp") &&
                    base::IntOr(*metadata, "deletionGracePeriodSeconds", 0) == 0;
  gone ? know_.pods.Drop(pod.key, pod.uid, kube::VersionOf(object)) : know_.pods.Apply(object);
}

void Turns::Release(const TurnPtr& turn, const Pod& pod) {
  const Json patch = JsonObject{{"metadata", JsonObject{{"uid", pod.uid},
                                                        {"$deleteFromPrimitiveList/finalizers",
                                                         base::JsonArray{Json(kFinalizer)}}}}};
  const std::string path = kube::Path("v1", kPods, pod.key.name_space, pod.key.name);
  Send(
      turn,
      [path, body = base::CompactJson(patch)] {
        return Request{"PATCH", path, kStrategicPatch, body};
      },
      [this, turn, pod, path](Result<Response> response) {
        if (!response) {
          turn->error = response.error();
          return;
        }
        if (auto error = kube::ErrorOf(*response)) {
          if (error->kind() == base::ErrorKind::kNotFound) {
            know_.pods.Drop(pod.key, pod.uid, pod.version);
          } else if (WillNeverDo(*error)) {
            // Another UID: the name is another pod's by now.
            LookAt(turn, true, path, *error);
          } else {
            turn->error = std::move(*error);
          }
        } else if (auto object = base::ParseJson(response->body)) {
          TookAway(*object, pod);
        }
      });
}

void Turns::DeleteService(const TurnPtr& turn, const Service& service) {
  Delete(turn, kube::Path("v1", kServices, service.key.name_space, service.key.name),
         {{"preconditions", JsonObject{{"uid", service.uid}}}},
         [this, turn, service](const Json* object) {
           know_.services.Drop(service.key, service.uid, service.version);
           if (object) {
             chronicle_.Tell(*turn->job, {false, "SuccessfulDeleteService",
                                          "Deleted service: " + service.key.name});
           }
         });
}

void Turns::DeleteJob(const TurnPtr& turn) {
  Delete(turn, JobPath(turn->key),
         {{"preconditions", JsonObject{{"uid", turn->job->metadata.uid}}},
          {"propagationPolicy", "Background"}},
         [this, turn](const Json* object) {
           if (!object) return;
           chronicle_.Deleted(*turn->job);
           chronicle_.Tell(*turn->job,
                           {false, "SuccessfulDeleteJob", "Deleted job: " + turn->key.name});
         });
}

// `done` gets the answer's object, or nothing when there was nothing of that UID to delete.
void Turns::Delete(const TurnPtr& turn, std::string path, JsonObject options,
                   std::function<void(const Json*)> done) {
  options["apiVersion"] = "v1";
  options["kind"] = "DeleteOptions";
  Send(
      turn,
      [path = std::move(path), body = base::CompactJson(options)] {
        return Request{"DELETE", path, kJson, body};
      },
      [turn, done = std::move(done)](Result<Response> response) {
        if (!response) {
          turn->error = response.error();
          return;
        }
        if (auto error = kube::ErrorOf(*response)) {
          const bool gone = error->kind() == base::ErrorKind::kNotFound ||
                            error->kind() == base::ErrorKind::kTaken;
          gone ? done(nullptr) : void(turn->error = std::move(*error));
        } else if (auto object = base::ParseJson(response->body)) {
          done(&*object);
        }
      });
}

// Why pods do not start, once for each pod and reason.
void Turns::TellTroubles(const TurnPtr& turn, Entry& entry) {
  for (const Pod& pod : turn->pods) {
    if (pod.trouble.empty() || !entry.told.insert(pod.uid + pod.trouble).second) continue;
    chronicle_.Tell(*turn->job, {true, pod.trouble, pod.trouble_message});
  }
}

}  // namespace backend::cluster
