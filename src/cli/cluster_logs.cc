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

class FollowedLogs : public LogSource {
 public:
  FollowedLogs(Cluster& cluster, Store store, const PlacedJob& job, const LogWish& wish)
      : server_(cluster.server()),
        follow_(cluster.door(store), cluster.server(), job.name_space(), job.name()),
        logs_(cluster.server()),
        chosen_(wish.replicas.begin(), wish.replicas.end()),
        range_(RangeOf(wish)) {}

  Result<std::vector<TimedChunk>> Read() override {
    const Time until = io::Now() + kMoment;
    std::vector<TimedChunk> out;
    do {
      const Time now = io::Now();
      follow_.Advance(now);
      const auto pods = follow_.pods();
      logs_.Watch(pods, chosen_, range_);
      if (!pods.empty())
        range_.tail_lines.reset();  // later pods are followed from their first line
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
  LogRange range_;
  std::optional<Time> trouble_since_;
  bool ended_ = false;
};

class LogsOnce : public LogSource {
 public:
  explicit LogsOnce(PrintedLogs printed) : printed_(std::move(printed)) {}
  Result<std::vector<TimedChunk>> Read() override {
    ended_ = true;
    return std::exchange(printed_.chunks, {});
  }
  bool ended() const override { return ended_; }
  bool skipped() const override { return printed_.skipped; }

 private:
  PrintedLogs printed_;
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
  return std::make_unique<LogsOnce>(TRY(ReadPodLogs(
      cluster.client(), pods, {wish.replicas.begin(), wish.replicas.end()}, RangeOf(wish))));
}

}  // namespace cli
