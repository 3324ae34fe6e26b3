// The logs of a job's pods, as the cluster still has them: those of pods that were replaced are
// gone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/status.h"
#include "backend/cluster/pod.h"
#include "cli/place.h"
#include "kube/client.h"
#include "kube/logs.h"

namespace cli {

// The part of each pod's log that is read; everything when empty.
struct LogRange {
  std::optional<int64_t> since_seconds, tail_lines;
};
LogRange RangeOf(const LogWish& wish);

// Follows the log of every pod that is shown to it, successors of the same name included. A step
// machine, as kube::LogFollow.
class PodLogs {
 public:
  explicit PodLogs(kube::Transport& transport) : transport_(transport) {}

  // `chosen` empty: of all replicas.
  void Watch(const std::vector<const backend::cluster::Pod*>& pods,
             const std::set<api::ReplicaId>& chosen, const LogRange& range = {});
  void Advance(base::Time now);
  std::optional<base::Time> next() const;
  // What has come, in the order of the times that the nodes wrote down.
  std::vector<TimedChunk> Take();
  // Every log that is followed has been read to its end, but for those of pods that still run.
  bool ended(const std::vector<const backend::cluster::Pod*>& pods) const;

 private:
  struct Followed {
    std::unique_ptr<kube::LogFollow> log;
    bool early;  // asked for before the pod was reported to run
  };
  void Forget(const std::string& name);
  void HurryEarly(const std::vector<const backend::cluster::Pod*>& pods);

  kube::Transport& transport_;
  std::map<std::string, Followed> follows_;   // by the UID of the pod
  std::map<std::string, std::string> names_;  // of pods, and the UIDs of those that are followed
  std::set<api::ReplicaId> seen_;
  std::vector<TimedChunk> taken_;
};

struct PrintedLogs {
  std::vector<TimedChunk> chunks;
  bool skipped = false;  // a log had as many lines as the range allows, so there may be more
};

// Reads what these pods have printed so far.
base::Result<PrintedLogs> ReadPodLogs(kube::Client& client,
                                      const std::vector<const backend::cluster::Pod*>& pods,
                                      const std::set<api::ReplicaId>& chosen,
                                      const LogRange& range);

}  // namespace cli
