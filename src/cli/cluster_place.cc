#include "cli/cluster_place.h"

#include <algorithm>

#include <fmt/core.h>

#include "api/decode.h"
#include "backend/cluster/objects.h"
#include "backend/cluster/pod.h"
#include "backend/cluster/stored.h"
#include "backend/local/replica.h"
#include "cli/cluster_audit.h"
#include "cli/cluster_gone.h"
#include "cli/cluster_logs.h"
#include "cli/findings.h"
#include "cli/job_follow.h"
#include "cli/ledger_audit.h"
#include "cli/pod_troubles.h"
#include "cli/pod_usage.h"
#include "cli/queue.h"
#include "cli/spawned.h"
#include "cli/waiting.h"
#include "io/clock.h"
#include "kube/api.h"

namespace cli {
namespace {

using api::ReplicaId;
using backend::cluster::Pod;
using backend::cluster::StoredJob;
using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonObject;
using base::Result;
using base::Time;
using namespace std::chrono_literals;

// Whoever keeps a job answers a wish within seconds; after this long, nobody does.
constexpr base::Duration kHeededWithin = 60s;

std::string JobPath(const std::string& name_space, const std::string& name = "") {
  return kube::Path(api::kApiVersion, "tfjobs", name_space, name);
}

// Something of it runs, or somebody will make it run.
bool IsAlive(const api::JobStatus& status) {
  if (api::IsTerminal(status)) return false;
  if (!api::Has(status, "Suspended")) return true;
  return std::ranges::any_of(status.replica_statuses,
                             [](const auto& entry) { return entry.second.active > 0; });
}

std::vector<const Pod*> PointersTo(const std::vector<Pod>& pods) {
  std::vector<const Pod*> out;
  for (const Pod& pod : pods) out.push_back(&pod);
  return out;
}

class JobThere : public PlacedJob {
 public:
  JobThere(Cluster& cluster, Store store, std::string again, const std::string& name_space,
           const std::string& name)
      : PlacedJob(name_space, name), cluster_(cluster), store_(store), again_(std::move(again)) {}

  Result<Standing> Look() override {
    const StoredJob stored = TRY(Load());
    return Standing{*stored.value, IsAlive(stored.value->status), QueueOf(*stored.value)};
  }

  Result<std::vector<Json>> Events() override {
    return EventsOf(cluster_, name_space(), name(), TRY(Load()).uid);
  }

  Result<std::vector<Trouble>> Troubles(const Standing& standing) override {
    const api::JobStatus& status = standing.job.status;
    if (api::IsTerminal(status)) return std::vector<Trouble>();
    if (auto queue = WhyQueued(cluster_, standing.job)) return std::vector<Trouble>{*queue};
    if (status.conditions.empty())
      return std::vector<Trouble>{WhyNobodyKeeps(cluster_, store_, standing.job, again_)};
    if (standing.job.spec.run_policy.suspend) return std::vector<Trouble>();
    const std::vector<Pod> list = TRY(Pods());
    const std::vector<const Pod*> pods = PointersTo(list);
    std::vector<Trouble> out =
        TroublesOf(pods, NeedsWarnings(pods) ? WarningsAboutPods(cluster_, name_space())
                                             : std::vector<Warning>());
    const auto add = [&](const std::vector<Trouble>& more) {
      out.insert(out.end(), more.begin(), more.end());
    };
    if (!MissingOf(standing.job, pods).empty())
      add(Refusals(standing.job, pods, TRY(Events())));
    add(EndedServers(standing.job));
    if (store_ == Store::kConfigMaps) {
      if (auto master = MasterTrouble(cluster_, standing.job)) out.push_back(*master);
    }
    return out;
  }

  Kept WhatIsKept(const api::Job& job) override { return KeptThere(job, again_); }

  Result<std::vector<ReplicaId>> WithLogs() override {
    return backend::local::ReplicasInOrder(TRY(Look()).job.spec);
  }

  Result<std::unique_ptr<LogSource>> OpenLogs(const LogWish& wish) override {
    if (wish.follow) return FollowLogsThere(cluster_, store_, *this, wish);
    const std::vector<Pod> pods = TRY(Pods());
    return ReadLogsThere(cluster_, PointersTo(pods), wish);
  }

  Result<std::map<ReplicaId, Used>> Measure() override {
    const std::vector<Pod> pods = TRY(Pods());
    auto used = TRY(MeasurePods(cluster_.server(), cluster_.client(), PointersTo(pods)));
    const StoredJob stored = TRY(Load());
    if (const auto& shards = stored.value->status.shards) {
      for (const auto& [id, share] : shards->replicas)
        if (const auto one = used.find(id); one != used.end()) one->second.sharing = share;
    }
    return used;
  }

  Result<Json> Audit() override {
    const StoredJob stored = TRY(Load());
    return AuditThere(cluster_, store_, *stored.value);
  }

  Result<> Scale(api::Role role, int32_t count) override {
    const Standing standing = TRY(Look());
    api::Job job = standing.job;
    job.spec.replicas[role].replicas = count;
    if (auto errors = api::Validate(job); !errors.empty())
      return base::Invalid(errors.front().path + ": " + errors.front().detail);
    return Patch(
        {{"spec", JsonObject{{"tfReplicaSpecs",
                              JsonObject{{api::Name(role), JsonObject{{"replicas", count}}}}}}}});
  }

  Result<> Suspend() override {
    const StoredJob stored = TRY(Load());
    if (const std::string refusal = WhyNotSuspended(cluster_, *stored.value); !refusal.empty())
      return base::Invalid(refusal);
    wished_ = true;
    return Patch({{"spec", JsonObject{{"runPolicy", JsonObject{{"suspend", true}}}}}});
  }

  Result<> Stop(const std::string& by) override {
    wished_ = true;
    const kube::Response answer =
        TRY(cluster_.jobs(store_).Call(StopRequest(name_space(), name(), by)));
    if (auto error = kube::ErrorOf(answer)) return std::unexpected(*std::move(error));
    return {};
  }

  Result<bool> WaitUntilOver(std::optional<Time> until) override {
    return Wait(until, [this](const JobFollow& follow) {
      // A suspension that was requested here is waited for even where a queue holds the job back.
      return (follow.over() && (wished_ || !follow.IsQueued())) ||
             (follow.synced() && !follow.job() && !follow.AnyPodLives());
    });
  }

  // Nobody else is needed for it: the master may never have started.
  bool DeleteEndsIt() const override { return true; }

  Result<std::vector<std::string>> Delete(bool with_output) override {
    std::vector<std::string> left;
    if (auto stored = Load()) {
      const std::string path = JobPath(name_space(), name());
      TRY(cluster_.jobs(store_).Delete(path, stored->uid));
      left = TRY(RemovePods(cluster_, *stored->value));
      TRY(RemoveOwned(cluster_, store_, *stored->value));
      if (!TRY(WaitUntilGone(cluster_, cluster_.jobs(store_), path)))
        return std::unexpected(Error(
            ErrorKind::kUnavailable,
            fmt::format("{} is marked for deletion and stays for now: somebody's finalizer keeps "
                        "it: trainyard get {}{}",
                        name(), name(), again_)));
    } else if (stored.error().kind() != ErrorKind::kNotFound) {
      return std::unexpected(stored.error());
    }
    // A claim that was made for this job; others belong to whoever made them.
    const std::string claim = name() + "-output";
    const std::string path = kube::Path("v1", "persistentvolumeclaims", name_space(), claim);
    auto there = cluster_.client().Get(path);
    if (!there) return left;
    if (!with_output) {
      left.push_back("claim " + claim);
      return left;
    }
    TRY(cluster_.client().Delete(path));
    TRY(WaitUntilGone(cluster_, cluster_.client(), path));
    return left;
  }

 private:
  Result<StoredJob> Load() {
    const Json object = TRY(cluster_.jobs(store_).Get(JobPath(name_space(), name())));
    auto stored = backend::cluster::ReadJob(object);
    if (!stored) return base::Invalid(name() + " cannot be read");
    return *std::move(stored);
  }

  Result<std::vector<Pod>> Pods() {
    const base::JsonArray list =
        TRY(cluster_.client().List(kube::Path("v1", "pods", name_space()),
                                   fmt::format("{}={}", backend::cluster::kJobLabel, name())));
    std::vector<Pod> out;
    for (const Json& object : list) {
      if (auto pod = backend::cluster::ReadPod(object)) out.push_back(*std::move(pod));
    }
    return out;
  }

  Result<> Patch(JsonObject patch) {
    TRY(cluster_.jobs(store_).Patch(JobPath(name_space(), name()), std::move(patch)));
    return {};
  }

  template <typename Condition>
  Result<bool> Wait(std::optional<Time> until, const Condition& over) {
    JobFollow follow(cluster_.door(store_), cluster_.server(), name_space(), name());
    std::optional<Time> trouble;
    Time news = io::Now();
    while (true) {
      const Time now = io::Now();
      follow.Advance(now);
      if (follow.synced() && over(follow)) return true;
      if (follow.TakeNews()) news = now;
      if (wished_ && now - news > kHeededWithin && !IsHeeded(follow)) {
        return std::unexpected(
            Error(ErrorKind::kUnavailable,
                  InOneLine(WhyNobodyKeeps(cluster_, store_, *follow.job()->value, again_))));
      }
      if (until && now >= *until) return false;
      if (Interrupted()) return false;
      if (follow.trouble().empty()) {
        trouble.reset();
      } else if (now - trouble.value_or(now) > kAwayTooLong) {
        return std::unexpected(Error(ErrorKind::kUnavailable, follow.trouble()));
      } else if (!trouble) {
        trouble = now;
      }
      const Time wake = std::min(follow.next().value_or(now + 1s), until.value_or(now + 1s));
      cluster_.server().Poll(std::clamp<base::Duration>(wake - now, 1ms, 1s));
    }
  }

  // Whether whoever keeps the job has seen what was wished of it.
  static bool IsHeeded(const JobFollow& follow) {
    if (!follow.job()) return true;
    const api::JobStatus& status = follow.job()->value->status;
    return api::IsTerminal(status) || api::Has(status, "Suspended");
  }

  Cluster& cluster_;
  const Store store_;
  const std::string again_;
  bool wished_ = false;
};

class ClusterPlace : public Place {
 public:
  ClusterPlace(Cluster cluster, std::string again)
      : cluster_(std::move(cluster)), again_(std::move(again)) {}

  std::string NamespaceOf(const Args& args) const override { return cluster_.NamespaceOf(args); }

  Result<std::vector<Listing>> List(const std::string& name_space) override {
    std::vector<Listing> out;
    Waiting waiting(cluster_, name_space, again_);
    for (const auto& [store, object] : TRY(Objects(name_space))) {
      const auto stored = backend::cluster::ReadJob(object);
      if (!stored) continue;
      const api::Job& job = *stored->value;
      out.push_back({.name_space = stored->key.name_space,
                     .name = stored->key.name,
                     .status = job.status,
                     .alive = IsAlive(job.status),
                     .queue = QueueOf(job),
                     .waits_for = waiting.Why(store, job)});
    }
    for (const Spawned& one : FindSpawned(cluster_, name_space)) {
      const api::Job job = SpawnedJob(one.pods, io::Now());
      const std::vector<Pod> pods = SpawnedPods(one.pods);
      const std::vector<Trouble> troubles = TroublesOf(PointersTo(pods));
      const bool alive =
          std::ranges::any_of(pods, [](const Pod& pod) { return !core::HasEnded(pod.replica); });
      out.push_back({.name_space = one.name_space,
                     .name = one.tag,
                     .status = job.status,
                     .alive = alive,
                     .waits_for = troubles.empty() ? "" : troubles.front().what});
    }
    std::ranges::sort(out, {}, [](const Listing& l) { return std::pair(l.name_space, l.name); });
    return out;
  }

  Result<std::unique_ptr<PlacedJob>> Find(const std::string& name_space,
                                          const std::string& name) override {
    std::vector<std::string> names;
    std::string latest, latest_time;
    Store its = Store::kTfJobs;
    for (const auto& [store, object] : TRY(Objects(name_space))) {
      const Json* metadata = base::Find(object, "metadata");
      if (!metadata) continue;
      names.push_back(base::StringOr(*metadata, "name"));
      if (names.back() == name) return Placed(store, name_space, name);
      const std::string created = base::StringOr(*metadata, "creationTimestamp");
      if (created < latest_time) continue;
      latest_time = created;
      latest = names.back();
      its = store;
    }
    std::string spawned;  // if the latest, or the one of this name, is of TF-Spawner
    for (const Spawned& one : FindSpawned(cluster_, name_space)) {
      names.push_back(one.tag);
      if (one.tag == name) return OpenSpawned(cluster_, name_space, one.tag, again_);
      if (one.created < latest_time) continue;
      latest_time = one.created;
      spawned = one.tag;
    }
    if (!name.empty() || names.empty()) return std::unexpected(NoSuchJob(name_space, name, names));
    if (!spawned.empty()) return OpenSpawned(cluster_, name_space, spawned, again_);
    return Placed(its, name_space, latest);
  }

  Result<std::unique_ptr<PlacedJob>> FindRemains(const std::string& name_space,
                                                 const std::string& name) override {
    TRY(cluster_.client().Get(
        kube::Path("v1", "persistentvolumeclaims", name_space, name + "-output")));
    // Wherever it was kept, it is gone; but not everybody may ask for TFJobs.
    return Placed(Store::kConfigMaps, name_space, name);
  }

 private:
  std::unique_ptr<PlacedJob> Placed(Store store, const std::string& name_space,
                                    const std::string& name) {
    return std::make_unique<JobThere>(cluster_, store, again_, name_space, name);
  }

  // However they are kept. A cluster that knows no TFJob, or tells us nothing of them, may still
  // have jobs with a master each.
  Result<std::vector<std::pair<Store, Json>>> Objects(const std::string& name_space) {
    std::vector<std::pair<Store, Json>> out;
    std::optional<Error> refused;
    for (Store store : {Store::kTfJobs, Store::kConfigMaps}) {
      auto list = cluster_.jobs(store).List(JobPath(name_space));
      if (list) {
        for (Json& object : *list) out.emplace_back(store, std::move(object));
        continue;
      }
      const ErrorKind kind = list.error().kind();
      if (kind == ErrorKind::kNotFound) continue;  // no such definition
      if (kind != ErrorKind::kForbidden || refused)
        return std::unexpected(cluster_.Explain(list.error()));
      refused = list.error();
    }
    return out;
  }

  Cluster cluster_;
  const std::string again_;
};

}  // namespace

std::string TimeOfEvent(const Json& event) {
  for (const char* key : {"lastTimestamp", "eventTime", "firstTimestamp"}) {
    if (std::string time = base::StringOr(event, key); !time.empty()) return time;
  }
  return "";
}

Result<std::vector<Json>> EventsOf(Cluster& cluster, const std::string& name_space,
                                   const std::string& name, const std::string& uid) {
  const Json list = TRY(cluster.client().Get(
      kube::WithQuery(kube::Path("v1", "events", name_space),
                      {{"fieldSelector",
                        fmt::format("involvedObject.name={},involvedObject.uid={}", name, uid)}})));
  std::vector<Json> out;
  const Json& items = base::At(list, "items");
  if (!items.is_array()) return out;
  for (const Json& event : items.get_array()) {
    out.push_back(JsonObject{{"time", TimeOfEvent(event)},
                             {"type", base::StringOr(event, "type")},
                             {"reason", base::StringOr(event, "reason")},
                             {"message", base::StringOr(event, "message")}});
  }
  std::ranges::stable_sort(out, {}, [](const Json& e) { return base::StringOr(e, "time"); });
  return out;
}

kube::Request StopRequest(const std::string& name_space, const std::string& name,
                          const std::string& by) {
  const JsonObject annotations{{"trainyard.dev/stopped-by", by}};
  return {.method = "PATCH",
          .path = JobPath(name_space, name),
          .content_type = "application/merge-patch+json",
          .body = base::CompactJson(
              JsonObject{{"metadata", JsonObject{{"annotations", annotations}}}})};
}

std::string TypedAgain(const Args& args) {
  std::string out;
  if (args.Has("on")) out += " --on " + args.Get("on");
  if (args.Has("namespace")) out += " -n " + args.Get("namespace");
  return out;
}

Kept KeptThere(const api::Job& job, const std::string& again) {
  Kept out{.logs = "trainyard logs " + job.metadata.name + again, .again = again};
  const std::string& output = job.extensions.output;
  if (output.empty()) return out;
  const bool is_url = output.find("://") != std::string::npos;
  out.checkpoint = is_url ? output : "claim " + output;
  if (!is_url) out.next = "trainyard fetch " + job.metadata.name + again;
  return out;
}

Result<Store> StoreOf(Cluster& cluster, const std::string& name_space, const std::string& name) {
  auto as_tfjob = cluster.client().Get(JobPath(name_space, name));
  if (as_tfjob) return Store::kTfJobs;
  if (cluster.jobs(Store::kConfigMaps).Get(JobPath(name_space, name))) return Store::kConfigMaps;
  return std::unexpected(cluster.Explain(as_tfjob.error()));
}

JsonObject OwnerOf(const Json& job, Store store) {
  const bool tfjob = store == Store::kTfJobs;
  return {{"apiVersion", tfjob ? api::kApiVersion : "v1"},
          {"kind", tfjob ? api::kKind : "ConfigMap"},
          {"name", kube::Metadata(job, "name") + (tfjob ? "" : "-job")},
          {"uid", kube::Metadata(job, "uid")}};
}

base::JsonArray OwnersThere(Cluster& cluster, const std::string& name_space,
                            const std::string& name) {
  const auto store = StoreOf(cluster, name_space, name);
  if (!store) return {};
  const auto job = cluster.jobs(*store).Get(JobPath(name_space, name));
  return job ? base::JsonArray{OwnerOf(*job, *store)} : base::JsonArray();
}

std::unique_ptr<Place> OpenClusterPlace(Cluster cluster, const Args& args) {
  return std::make_unique<ClusterPlace>(std::move(cluster), TypedAgain(args));
}

}  // namespace cli
