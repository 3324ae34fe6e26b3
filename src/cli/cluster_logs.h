// The logs of a job on a cluster, as its place hands them out.
#pragma once

#include <memory>
#include <vector>

#include "backend/cluster/pod.h"
#include "base/result.h"
#include "cli/cluster.h"
#include "cli/place.h"

namespace cli {

// Those of all pods to come as well, until the job is over.
std::unique_ptr<LogSource> FollowLogsThere(Cluster& cluster, Store store, const PlacedJob& job,
                                           const LogWish& wish);

// What these pods have said until now.
base::Result<std::unique_ptr<LogSource>> ReadLogsThere(
    Cluster& cluster, const std::vector<const backend::cluster::Pod*>& pods, const LogWish& wish);

}  // namespace cli
