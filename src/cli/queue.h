// Jobs that Kueue holds back: their queue suspends them until it admits them.
#pragma once

#include <optional>
#include <string>

#include "api/tfjob.h"
#include "base/json.h"
#include "cli/cluster.h"
#include "cli/place.h"

namespace cli {

// The queue that holds a job back; empty: none does.
std::string QueueOf(const api::Job& job);

// What the job waits for in its queue. `workload` is Kueue's record of it; null: there is none.
// Pure.
Trouble QueuedFor(const api::Job& job, const base::Json& workload);

// The same, with the workload read from the cluster; nothing when no queue holds the job back.
std::optional<Trouble> WhyQueued(Cluster& cluster, const api::Job& job);

}  // namespace cli
