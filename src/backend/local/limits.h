// Memory and CPU limits of a replica on this machine, by the best means that the machine allows.
//
// cgroup v2 where it is writable and has the controllers, else cgroup v1, else the guard adds up
// resident memory ten times a second and kills (and CPU is not limited). No RLIMIT_AS: TensorFlow
// reserves far more than it uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

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

// `name` is unique on this machine. TRAINYARD_LIMITS=cgroup-v2|cgroup-v1|polling picks the means
// (for tests and doctor).
Enforcement Enforce(const Limits& limits, const std::string& name);

// Kills what is left in these cgroups and removes them: those of a guard that could not.
void Release(const std::vector<std::string>& cgroups);

}  // namespace backend::local
