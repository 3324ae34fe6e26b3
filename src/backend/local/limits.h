// Memory and CPU limits of a replica on this machine, by the best means that the machine allows.
//
// cgroup v2 where it is writable and has the controllers, else cgroup v1, else the guard adds up
// resident memory ten times a second and kills (and CPU is not limited). No RLIMIT_AS: TensorFlow
// reserves far more than it uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/json.h"
#include "base/result.h"
#include "io/files.h"

namespace backend::local {

struct Limits {
  int64_t memory_bytes = 0;  // 0: none
  int64_t cpu_millis = 0;    // thousandths of a core; 0: none
  bool operator==(const Limits&) const = default;
};

// resources.limits of the container named tensorflow.
base::Result<Limits> LimitsOf(const base::Json& pod_template);

struct Enforcement {
  std::vector<std::string>
      cgroups;  // made for this replica; its guard joins, reads and removes them
  bool poll_memory = false;
  std::string by;            // "cgroup v2", "cgroup v1", "polling"; empty: nothing to enforce
  std::string not_enforced;  // what could not be, in words
};

// Enforces the limits of one supervisor's replicas.
//
// In cgroup v2 a group that holds processes cannot divide its resources among children. So a
// supervisor that was given a group of its own (systemd-run --scope -p Delegate=yes) moves into a
// leaf of it, trainyard-PID, where its guards are too, and replicas get groups beside that. The
// leaf lives as long as the Enforcer, whose end leaves the group as it was found. When the
// supervisor is killed, a process of its own does that (guard/leaf.h). A group with other processes
// in it is not ours to divide.
class Enforcer {
 public:
  Enforcer() = default;
  Enforcer(const Enforcer&) = delete;
  Enforcer& operator=(const Enforcer&) = delete;
  // Everything started meanwhile must have ended.
  ~Enforcer();

  // `name` is unique on this machine. TRAINYARD_LIMITS=cgroup-v2|cgroup-v1|polling picks the means
  // (for tests and doctor). Memory counts for more: where no means does both, CPU goes unlimited.
  Enforcement Enforce(const Limits& limits, const std::string& name);

  // The process that removes the leaf, a child of this one; 0: none.
  pid_t leaf_guard() const { return leaf_guard_; }

 private:
  std::optional<Enforcement> TryV2(const Limits& limits, const std::string& name);
  bool Divide(const std::string& group, const std::string& controllers);
  base::Result<> EnterLeaf(const std::string& group);
  void LeaveLeaf();

  std::string group_;  // that we were started in and have left for leaf_
  std::string leaf_;
  pid_t leaf_guard_ = 0;
  io::Fd leaf_control_;  // closed: the leaf is not needed any more
};

// Kills what is left in these cgroups and removes them: those of a guard that could not.
void Release(const std::vector<std::string>& cgroups);

}  // namespace backend::local
