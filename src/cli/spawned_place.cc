// A job of TF-Spawner as the verbs see it.
#include <algorithm>

#include <fmt/core.h>

#include "cli/cluster_logs.h"
#include "cli/cluster_place.h"
#include "cli/job_follow.h"
#include "cli/pod_logs.h"
#include "cli/pod_troubles.h"
#include "cli/pod_usage.h"
#include "cli/spawned.h"
#include "cli/tf_spawner.h"
#include "io/clock.h"
#include "kube/api.h"

namespace cli {
namespace {

using api::ReplicaId;
using backend::cluster::Pod;
using base::Error;
using base::ErrorKind;
using base::Json;
using base::Result;
using base::Time;
using namespace std::chrono_literals;

constexpr base::Duration kMoment = 200ms;
constexpr base::Duration kLookAgain = 1s;

std::vector<const Pod*> PointersTo(const std::vector<Pod>& pods) {
  std::vector<const Pod*> out;
  for (const Pod& pod : pods) out.push_back(&pod);
  return out;
}

bool HaveEnded(const std::vector<Pod>& pods) {
  return std::ranges::all_of(pods, [](const Pod& pod) { return core::HasEnded(pod.replica); });
}

Result<std::vector<Json>> PodsOf(Cluster& cluster, const std::string& name_space,
                                 const std::string& tag) {
  const base::JsonArray list =
      TRY(cluster.client().List(kube::Path("v1", "pods", name_space), SelectorOf(tag)));
  if (list.empty())
    return std::unexpected(
        Error(ErrorKind::kNotFound,
              fmt::format("no pod in namespace {} has the label {}", name_space, SelectorOf(tag))));
  return std::vector<Json>(list.begin(), list.end());
}

// Follows the logs of all pods.
class SpawnedLogs : public LogSource {
 public:
  SpawnedLogs(Cluster& cluster, std::string name_space, std::string tag, const LogWish& wish)
      : cluster_(cluster),
        name_space_(std::move(name_space)),
        tag_(std::move(tag)),
        chosen_(wish.replicas.begin(), wish.replicas.end()),
        range_(RangeOf(wish)),
        logs_(cluster.server()) {}

  Result<std::vector<TimedChunk>> Read() override {
    const Time now = io::Now();
    if (now >= look_) {
      auto pods = PodsOf(cluster_, name_space_, tag_);
      gone_ = !pods && pods.error().kind() == ErrorKind::kNotFound;
      if (pods) pods_ = SpawnedPods(*pods);
      look_ = io::Now() + kLookAgain;
    }
    const bool over = gone_ || HaveEnded(pods_);
    logs_.Watch(PointersTo(pods_), chosen_, range_);
    if (!pods_.empty()) range_.tail_lines.reset();  // later pods are followed from their first line
    logs_.Advance(io::Now());
    cluster_.server().Poll(kMoment);
    std::vector<TimedChunk> out = logs_.Take();
    ended_ = over && out.empty() && logs_.ended(PointersTo(pods_));
    return out;
  }

  bool ended() const override { return ended_; }

 private:
  Cluster& cluster_;
  const std::string name_space_, tag_;
  const std::set<ReplicaId> chosen_;
  LogRange range_;
  PodLogs logs_;
  std::vector<Pod> pods_;
  Time look_;
  bool gone_ = false, ended_ = false;
};

class SpawnedThere : public PlacedJob {
 public:
  SpawnedThere(Cluster& cluster, const std::string& name_space, const std::string& tag,
               std::string again)
      : PlacedJob(name_space, tag), cluster_(cluster), again_(std::move(again)) {}

  Result<Standing> Look() override {
    const std::vector<Json> pods = TRY(Pods());
    return Standing{SpawnedJob(pods, io::Now()), !HaveEnded(SpawnedPods(pods))};
  }

  Result<std::vector<Json>> Events() override {
    std::vector<Json> out;
    for (const Pod& pod : SpawnedPods(TRY(Pods()))) {
      for (Json& event : TRY(EventsOf(cluster_, name_space(), pod.key.name, pod.uid)))
        out.push_back(std::move(event));
    }
    std::ranges::stable_sort(out, {}, [](const Json& e) { return base::StringOr(e, "time"); });
    return out;
  }

  Result<std::vector<Trouble>> Troubles(const Standing& standing) override {
    if (api::IsTerminal(standing.job.status)) return std::vector<Trouble>();
    const std::vector<Pod> list = SpawnedPods(TRY(Pods()));
    const std::vector<const Pod*> pods = PointersTo(list);
    return TroublesOf(pods, NeedsWarnings(pods) ? WarningsAboutPods(cluster_, name_space())
                                                : std::vector<Warning>());
  }

  Kept WhatIsKept(const api::Job& job) override { return KeptThere(job, again_); }

  Result<std::vector<ReplicaId>> WithLogs() override {
    std::vector<ReplicaId> out;
    for (const Pod& pod : SpawnedPods(TRY(Pods()))) out.push_back(pod.replica.id);
    std::ranges::sort(out);
    return out;
  }

  Result<std::unique_ptr<LogSource>> OpenLogs(const LogWish& wish) override {
    if (wish.follow) return std::make_unique<SpawnedLogs>(cluster_, name_space(), name(), wish);
    const std::vector<Pod> pods = SpawnedPods(TRY(Pods()));
    return ReadLogsThere(cluster_, PointersTo(pods), wish);
  }

  Result<std::map<ReplicaId, Used>> Measure() override {
    const std::vector<Pod> pods = SpawnedPods(TRY(Pods()));
    return MeasurePods(cluster_.server(), cluster_.client(), PointersTo(pods));
  }

  Result<Json> Audit() override { return base::Invalid(name() + " is not elastic"); }
  Result<> Scale(api::Role, int32_t) override { return NotHere("scaled"); }
  Result<> Suspend() override { return NotHere("suspended"); }
  Result<> Stop(const std::string&) override { return NotHere("stopped"); }
  Result<std::vector<std::string>> Delete(bool) override { return NotHere("deleted so"); }
  bool DeleteEndsIt() const override { return true; }

  Result<bool> WaitUntilOver(std::optional<Time> until) override {
    std::optional<Time> away;
    while (!Interrupted()) {
      const auto pods = Pods();
      if (!pods && pods.error().kind() != ErrorKind::kUnavailable)
        return std::unexpected(pods.error());
      if (pods) away.reset();
      if (!pods && !away) away = io::Now();
      if (away && io::Now() - *away > kAwayTooLong) return std::unexpected(pods.error());
      // One that failed is not started again: the others cannot go on without it.
      if (pods && api::IsTerminal(SpawnedJob(*pods, io::Now()).status)) return true;
      if (until && io::Now() >= *until) return false;
      cluster_.server().Poll(kLookAgain);
    }
    return false;
  }

 private:
  Result<std::vector<Json>> Pods() { return PodsOf(cluster_, name_space(), name()); }

  std::unexpected<Error> NotHere(const char* what) const {
    return base::Invalid(
        fmt::format("a job of tf-spawner cannot be {}: tf-spawner -d -t {} -n {} "
                    "deletes it",
                    what, name(), name_space()));
  }

  Cluster& cluster_;
  const std::string again_;
};

}  // namespace

std::unique_ptr<PlacedJob> OpenSpawned(Cluster& cluster, const std::string& name_space,
                                       const std::string& tag, const std::string& again) {
  return std::make_unique<SpawnedThere>(cluster, name_space, tag, again);
}

}  // namespace cli
