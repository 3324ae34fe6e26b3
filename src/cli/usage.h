// What the processes of replicas on this machine use.
#pragma once

#include <map>

#include <sys/types.h>

#include "api/status.h"
#include "base/time.h"
#include "cli/place.h"

namespace cli {

class ProcessMeter {
 public:
  // Of all descendants of each guard: memory now, CPU since the call before (0 at the first).
  std::map<api::ReplicaId, Used> Measure(const std::map<api::ReplicaId, pid_t>& guards,
                                         base::Time now);

 private:
  std::map<api::ReplicaId, int64_t> ticks_;
  base::Time measured_;
};

}  // namespace cli
