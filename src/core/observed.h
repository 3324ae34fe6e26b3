// The world as it was last seen: what a backend tells the core about one job.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/status.h"
#include "base/time.h"

namespace core {

enum class Phase { kPending, kRunning, kSucceeded, kFailed };

// How an incarnation ended. Which fields can be filled depends on the world; `code` always can.
struct Ending {
  int32_t code = 0;    // exit status, or 128 + signal
  int32_t signal = 0;  // 0: it exited by itself
  base::Time when;
  bool stopped = false;  // we asked it to end
  // Taken away rather than failed: preempted, evicted, deleted by somebody, its supervisor or node
  // lost. The words say how.
  std::string disruption;
  // Killed at its memory limit; the words say who enforced it ("cgroup v1", "polling").
  std::string memory_limit_by;
  int64_t memory_limit = 0;
  int64_t memory_peak = 0;
  std::string hang;         // aborted by us because it got nowhere: "no progress for 12:00"
  std::string start_error;  // it never ran: the words say why
  std::vector<std::string> last_lines;  // the end of its log, oldest first

  bool operator==(const Ending&) const = default;
};

// One incarnation of one replica.
struct ReplicaState {
  api::ReplicaId id;
  std::string incarnation;  // names this very copy: pod UID, or attempt and start time
  int32_t attempt = 0;      // given to it at its start
  Phase phase = Phase::kPending;
  bool deleting = false;  // on its way out, not gone yet
  bool leaving = false;   // gets no more work, and may finish what it has; not asked to end yet
  // Made, or about to be made, by its world, which asks nobody: a kubelet, in a pod that another
  // operator made.
  int32_t restarts_in_place = 0;
  // Its host does not answer, so that nobody knows what it does, or how it ended; the words say
  // which host. Empty: the host answers, as far as is known.
  std::string silent;
  std::optional<base::Time> started;
  std::optional<Ending> ending;  // if and only if phase is kSucceeded or kFailed

  bool operator==(const ReplicaState&) const = default;
};

inline bool HasEnded(const ReplicaState& replica) {
  return replica.phase == Phase::kSucceeded || replica.phase == Phase::kFailed;
}

// An incarnation by its place in the job: replica and attempt.
using Member = std::pair<api::ReplicaId, int32_t>;

// The data of an elastic job, as the master that hands it out in shards last told.
struct DataView {
  bool registered = false;  // the job has said what its data is
  bool complete = false;    // nothing is left to do; never before it is registered
  int64_t todo = 0;         // shards that could be handed out now
  int64_t doing = 0;        // shards that somebody has
  int64_t done = 0;
  int64_t records_left = 0;
  int64_t records_total = 0;  // 0: without end
  // Records that were set aside, because every try at them ended in an error.
  int64_t quarantined = 0;
  // Incarnations that may take, or have taken, something else for the end of the data.
  std::set<Member> misled;
  // Incarnations that have ended, and the master has not heard of it: what it says of them is from
  // before.
  std::set<Member> unheard;
  std::string broken;  // the data can be served no more; the words say why
};

struct Observed {
  std::vector<ReplicaState> replicas;  // in any order
  api::Progress progress;
  std::optional<DataView> data;  // nothing: nobody hands out data for this job
};

}  // namespace core
