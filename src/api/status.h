// What has become of a job: TFJob's status with our additions.
//
// The status is the only memory that decisions rest on. Conditions, counters and times are TFJob
// v1's; `restarts`, `disruptions`, `attempt`, `progress`, `shards` and `verdict` are ours; `units`,
// `completed` and `shape` are what the restart rules must remember across a crash
// (core/reconcile.h).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/time.h"

namespace api {

// In the order in which statuses are computed, as training-operator v1.9.
enum class Role { kChief, kEvaluator, kMaster, kPs, kWorker };
inline constexpr std::array<Role, 5> kRoles = {Role::kChief, Role::kEvaluator, Role::kMaster,
                                               Role::kPs, Role::kWorker};

std::string_view Name(Role role);       // "Worker", "PS": as in tfReplicaSpecs
std::string_view LowerName(Role role);  // "worker", "ps": as in TF_CONFIG and object names
// Any letter case; nothing for a name that is no role.
std::optional<Role> RoleFromName(std::string_view name);

struct ReplicaId {
  Role role = Role::kWorker;
  int32_t index = 0;
  auto operator<=>(const ReplicaId&) const = default;
};

std::string ToString(ReplicaId id);  // "worker-1", part of names and files
std::string Spoken(ReplicaId id);    // "worker/1", as people read it
std::optional<ReplicaId> ReplicaIdFrom(std::string_view text);  // reads both

struct Condition {
  std::string type;  // Created, Running, Restarting, Succeeded, Failed, Suspended
  bool status = true;
  std::string reason;
  std::string message;
  base::Time last_update;
  base::Time last_transition;
  bool operator==(const Condition&) const = default;
};

struct ReplicaStatus {
  int32_t active = 0;
  int32_t succeeded = 0;
  int32_t failed = 0;
  bool operator==(const ReplicaStatus&) const = default;
};

// What is restarted as one: the gang, or a single replica. `attempt` is the one that is wanted now;
// an incarnation of an earlier attempt is to be stopped, whatever it does.
struct Unit {
  int32_t attempt = 0;
  int32_t failures_in_row = 0;
  int32_t disruptions_in_row = 0;
  // Exits in a row with TensorFlow's preemption status that nothing but the program reported, and
  // the progress of the training at the last of them.
  int32_t preemptions_in_row = 0;
  int64_t preempted_at = 0;
  base::Time not_before;  // when the wanted attempt may start
  bool planned = false;   // raised by a person's wish (scale, resume), not by an ending
  bool operator==(const Unit&) const = default;
};

// An ending that mattered: a restart's cause, or one that followed from it.
struct Incident {
  ReplicaId replica;
  int32_t attempt = 0;
  base::Time when;
  std::string what;  // "killed by SIGKILL", "exit status 1", "out of memory at 512Mi of 512Mi"
  std::string line;  // the telling line of its log, or empty
  std::vector<ReplicaId> consequences;  // who ended because of it
  bool disruption = false;
  bool operator==(const Incident&) const = default;
};

// How the job ended and why, in words. Absent while it runs.
struct Verdict {
  std::string result;  // "succeeded", "failed", "stopped"
  std::string cause;   // one sentence
  std::string advice;  // one command or flag to try, may be empty
  int32_t exit_status = 0;
  bool operator==(const Verdict&) const = default;
};

struct Progress {
  std::optional<double> percent;
  std::optional<int64_t> step;
  std::optional<base::Duration> remaining;
  std::map<std::string, double> metrics;
  bool operator==(const Progress&) const = default;
};

// What one replica has of the data of an elastic job.
struct Share {
  int64_t doing = 0, done = 0;  // shards
  double records_per_second = 0;
  bool operator==(const Share&) const = default;
};

// The data of an elastic job that is handed out in shards, as its master last told.
struct Shards {
  int64_t todo = 0;  // shards that wait for somebody to take them
  int64_t doing = 0;
  int64_t done = 0;
  int64_t records_left = 0;
  int64_t records_total = 0;  // 0: the data has no end
  int64_t quarantined = 0;    // records set aside, because every try at them ended in an error
  bool complete = false;      // nothing is left but what was set aside
  std::map<ReplicaId, Share> replicas;  // that live; told on a cluster only
  bool operator==(const Shards&) const = default;
};

struct JobStatus {
  std::vector<Condition> conditions;  // the order matters: the last one is the printed state
  std::map<Role, ReplicaStatus> replica_statuses;
  std::optional<base::Time> start_time;
  std::optional<base::Time> completion_time;

  int32_t restarts = 0;     // failures answered with a restart
  int32_t disruptions = 0;  // preemptions, evictions, deletions by somebody
  int32_t attempt = 0;      // the highest attempt number given out
  int32_t life = 0;         // of the wishes to run again, the last one heeded
  Progress progress;
  std::optional<Shards> shards;  // once the job has said what its data is
  std::optional<Verdict> verdict;

  Unit gang;                        // of every replica that is not in `units`
  std::map<ReplicaId, Unit> units;  // replicas that were restarted alone
  std::set<ReplicaId> completed;    // ended well in their wanted attempt; never run again
  std::set<ReplicaId> seen;       // were there in their wanted attempt; gone since means taken away
  std::map<Role, int32_t> shape;  // replica counts that the running attempt was started with
  std::vector<Incident> incidents;  // the latest few, oldest first

  bool operator==(const JobStatus&) const = default;
};

const Condition* FindCondition(const JobStatus& status, std::string_view type);
// A condition of this type with status True.
bool Has(const JobStatus& status, std::string_view type);
bool IsTerminal(const JobStatus& status);  // Succeeded or Failed

base::Json EncodeStatus(const JobStatus& status);
// Lenient, for our own files: what is missing or of the wrong type is left at its default.
JobStatus DecodeStatus(const base::Json& json);

}  // namespace api
