// What pods use: as the cluster's metrics say where it has them, else as the containers see
// themselves.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/cluster/pod.h"
#include "base/result.h"
#include "cli/place.h"
#include "kube/client.h"
#include "kube/server.h"

namespace cli {

// Takes about a second where there are no metrics.
base::Result<std::map<api::ReplicaId, Used>> MeasurePods(
    kube::Server& server, kube::Client& client,
    const std::vector<const backend::cluster::Pod*>& pods);

// CPU time and memory out of a container's cgroup files, printed one after the other.
struct CgroupReading {
  int64_t cpu_micros = 0;
  int64_t memory = 0;
};
std::optional<CgroupReading> ReadCgroupFiles(const std::string& text);

}  // namespace cli
