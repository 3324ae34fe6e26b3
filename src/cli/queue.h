// Jobs that Kueue holds back: their queue suspends them until it admits them.
#pragma once

#include <optional>
#include <string>

#include "api/tfjob.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/cluster.h"
#include "cli/place.h"

namespace cli {

// The queue that the job was submitted to; empty: none.
std::string QueueNameOf(const api::Job& job);

// The queue that holds a job back; empty: none does.
std::string QueueOf(const api::Job& job);

// Kueue's record of the job, a Workload; null: there is none.
base::Result<base::Json> WorkloadOf(Cluster& cluster, const api::Job& job);

// Returns what the job waits for in its queue. `workload` may be null. Pure.
Trouble QueuedFor(const api::Job& job, const base::Json& workload);

// The same, with the workload read from the cluster; nothing when no queue holds the job back.
std::optional<Trouble> WhyQueued(Cluster& cluster, const api::Job& job);

// Why `resume` refuses the job, and what to type instead; empty: no queue is in the way. `again` is
// what a command must say to mean the same cluster.
std::string WhyNotResumed(Cluster& cluster, const api::Job& job, const std::string& again);

// The same for `suspend`: Kueue starts at once what it has admitted.
std::string WhyNotSuspended(Cluster& cluster, const api::Job& job);

}  // namespace cli
