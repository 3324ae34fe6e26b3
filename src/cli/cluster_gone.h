// What goes with a job of a cluster: until it is gone, the name is not free for another.
#pragma once

#include <string>

#include "api/tfjob.h"
#include "base/result.h"
#include "cli/cluster.h"

namespace cli {

// Takes away what was made for a job and belongs to it: its code, its variables, its master. The
// cluster would do so itself, in its own time: half a minute where TFJobs are new.
base::Result<> RemoveOwned(Cluster& cluster, Store store, const api::Job& job);

// Waits until the cluster has taken a claim away. What a pod still uses, that of a server beside
// the job say, may stay for longer: nobody waits for that.
base::Result<> WaitUntilGone(Cluster& cluster, const std::string& path);

}  // namespace cli
