// Decides what to do for one training job.
//
// Reconcile() is a pure function: no I/O, no clock, no random number, no state kept between calls.
// Given the job (what was asked for and what its status remembers), what was observed, and the
// time, it says which actions to take now, which status to publish and when to look again.
// Processes on this machine and pods on a cluster are driven by this same function, so a job
// behaves the same on both.
//
// The caller publishes the status before it performs the actions, and performs them in order. These
// laws hold, and each is a test:
//   settles           doing what it says and asking again asks for nothing new
//   level-triggered   no event is an argument: a missed or doubled notification changes nothing
//   intent first      a counter that an action rests on is in the status that is published before
//   the action, so a crash
//                     at any point neither loses nor doubles a restart
//   stops are exact   a stop names an incarnation, so a late one never hits its successor
//   terminal is final Succeeded and Failed exclude each other, and only clean-up follows
//   order-free        the order of Observed::replicas does not matter
//
// How a restart is remembered: every replica belongs to a unit (api::Unit) that says which attempt
// is wanted. A failure raises the wanted attempt; from then on the failed incarnation is merely an
// old one, so it is counted exactly once.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/tfjob.h"
#include "base/time.h"
#include "core/observed.h"

namespace core {

// Starts the replica in this attempt. Doing it twice is harmless: the backend knows (id, attempt).
struct Start {
  api::ReplicaId id;
  int32_t attempt = 0;
  auto operator<=>(const Start&) const = default;
};

// Ends this incarnation and no other. Graceful: SIGTERM, the grace period, SIGKILL. Otherwise
// SIGKILL. `finish`: a worker of an elastic job first gets no more data, and may finish the shard
// that it has, for as long as its grace period.
struct Stop {
  api::ReplicaId id;
  std::string incarnation;
  bool graceful = true;
  bool finish = false;
  auto operator<=>(const Stop&) const = default;
};

// Drops what is left of an incarnation that has ended, so that its name is free again.
struct Remove {
  api::ReplicaId id;
  std::string incarnation;
  auto operator<=>(const Remove&) const = default;
};

// The job has outlived its time to live.
struct DeleteJob {
  auto operator<=>(const DeleteJob&) const = default;
};

using Action = std::variant<Start, Stop, Remove, DeleteJob>;

struct Event {
  bool warning = false;
  std::string reason;
  std::string message;
  bool operator==(const Event&) const = default;
};

// What the host of the controller decides; never read from the environment.
struct Policy {
  // Replicas still running when the job is decided are ended (one machine: nothing outlives its
  // supervisor). Otherwise cleanPodPolicy alone decides (a cluster).
  bool end_leftovers = true;
  // Endings closer together than this have no known order.
  base::Duration clock_resolution{1};
  // How long it may take until a host that does not answer is known as such (ReplicaState::silent).
  // An ending that blames a peer is judged after that time, if the peers run as far as is known.
  base::Duration notices_silence{0};
  // Replicas are pods with an image of their own; otherwise they are processes of this machine.
  bool in_pods = false;
};

struct Decision {
  std::vector<Action> actions;  // in the order to perform them, after the status is published
  api::JobStatus status;
  std::vector<Event> events;
  std::optional<base::Time> look_again;
  // Were there by the status, and nothing is seen of them. A world whose view of replicas may be
  // older than the status that it was asked with looks again before it acts on that.
  std::vector<api::ReplicaId> missed;
};

Decision Reconcile(const api::Job& job, const Observed& observed, const Policy& policy,
                   base::Time now);

// Changes that are not Reconcile's own to decide. Each returns the status to publish; Reconcile
// does the rest.
api::JobStatus Stopped(const api::Job& job, const std::string& by, base::Time now);
// The job as written can never run: it ends here, and nothing is started for it.
api::JobStatus Refused(const api::Job& job, const std::string& why, base::Time now);
// A failed, stopped or interrupted job gets a new life: limits and back-off start afresh, the
// history stays.
api::JobStatus Revived(const api::Job& job, base::Time now);
// The pods of the job are deleted, and created again no earlier than `until`. Counted neither as a
// failure nor as a disruption.
api::JobStatus BackedOff(const api::Job& job, const std::string& why, base::Time until,
                         base::Time now);

}  // namespace core
