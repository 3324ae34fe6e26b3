#include "cli/cluster_logs.h"

#include <algorithm>
#include <set>

#include "cli/job_follow.h"
#include "cli/pod_logs.h"
#include "io/clock.h"

namespace cli {
namespace {

using api::ReplicaId;
using backend::cluster::Pod;
using base::Error;
using base::ErrorKind;
using base::Result;
using base::Time;
using namespace std::chrono_literals;

constexpr base::Duration kMoment = 200ms;

std::optional<int64_t> SecondsSince(std::optional<Time> since) {
  if (!since) return std::nullopt;
  return std::max<int64_t>(1, std::chrono::ceil<std::chrono::seconds>(io::Now() - *since).count());
}

class FollowedLogs : public LogSource {
 public:
  FollowedLogs(Cluster& cluster, Store store, const PlacedJob& job, const LogWish& wish)
      : server_(cluster.server()),
        follow_(cluster.door(store), cluster.server(), job.name_space(), job.name()),
        logs_(cluster.server()),
        chosen_(wish.replicas.begin(), wish.replicas.end()),
        since_(SecondsSince(wish.since)) {}

  Result<std::vector<TimedChunk>> Read() override {
    const Time until = io::Now() + kMoment;
    std::vector<TimedChunk> out;
    do {
      const Time now = io::Now();
      follow_.Advance(now);
      logs_.Watch(follow_.pods(), chosen_, since_);
      logs_.Advance(now);
      server_.Poll(std::max(base::Duration(1000), std::min(until - now, kMoment)));
      out = logs_.Take();
    } while (out.empty() && io::Now() < until);
    if (follow_.trouble().empty()) {
      trouble_since_.reset();
    } else if (!trouble_since_) {
      trouble_since_ = io::Now();
    } else if (out.empty() && io::Now() - *trouble_since_ > kAwayTooLong) {
      return std::unexpected(Error(ErrorKind::kUnavailable, follow_.trouble()));
    }
    const bool over =
        (follow_.over() && !follow_.IsQueued()) || (follow_.synced() && !follow_.job());
    ended_ = over && out.empty() && logs_.ended(follow_.pods());
    return out;
  }

  bool ended() const override { return ended_; }

 private:
  kube::Server& server_;
  JobFollow follow_;
  PodLogs logs_;
  std::set<ReplicaId> chosen_;
  std::optional<int64_t> since_;
  std::optional<Time> trouble_since_;
  bool ended_ = false;
};

class LogsOnce : public LogSource {
 public:
  explicit LogsOnce(std::vector<TimedChunk> chunks) : chunks_(std::move(chunks)) {}
  Result<std::vector<TimedChunk>> Read() override {
    ended_ = true;
    return std::exchange(chunks_, {});
  }
  bool ended() const override { return ended_; }

 private:
  std::vector<TimedChunk> chunks_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<LogSource> FollowLogsThere(Cluster& cluster, Store store, const PlacedJob& job,
                                           const LogWish& wish) {
  return std::make_unique<FollowedLogs>(cluster, store, job, wish);
}

Result<std::unique_ptr<LogSource>> ReadLogsThere(Cluster& cluster,
                                                 const std::vector<const Pod*>& pods,
                                                 const LogWish& wish) {
  return std::make_unique<LogsOnce>(
      TRY(ReadPodLogs(cluster.client(), pods, {wish.replicas.begin(), wish.replicas.end()},
                      SecondsSince(wish.since))));
}

}  // namespace cli
