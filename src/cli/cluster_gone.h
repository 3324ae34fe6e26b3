// What goes with a job of a cluster: until it is gone, the name is not free for another.
#pragma once

#include <string>
#include <vector>

#include "api/tfjob.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/cluster.h"

namespace cli {

// Takes away what was made for a job and belongs to it: its code, its variables, its master. The
// cluster would do so itself, in its own time: half a minute where TFJobs are new.
base::Result<> RemoveOwned(Cluster& cluster, Store store, const api::Job& job);

// Takes our finalizer off a pod, if it carries it.
base::Result<> Release(kube::Client& client, const base::Json& pod);

// Removes the pods of a job whose record is deleted, and waits until they are gone. It does what
// the operator or the master would do, since neither may be there. Returns a line for each pod that
// stays because its node does not report its end.
base::Result<std::vector<std::string>> RemovePods(Cluster& cluster, const api::Job& job);

// Waits until the cluster has taken an object away; false: not within half a minute. A claim that
// a pod still uses, that of a server beside the job for example, may stay for longer.
base::Result<bool> WaitUntilGone(Cluster& cluster, kube::Client& client, const std::string& path);

}  // namespace cli
