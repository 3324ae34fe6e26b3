// The lives of jobs that the operator is tested by: what is asked for, and what happens then.
//
// A workload is a script. Each step waits until something is so in the cluster, then for a while,
// and then does its deed if it is still so. Steps wait for states and never for times, so that a
// fault which makes things slower or does them again leads through the same script to the same end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/sim/cluster_world.h"

namespace backend::sim {

struct Workload {
  struct Step {
    std::function<bool(const ClusterWorld&)> when;
    base::Duration after;
    std::function<void(ClusterWorld&)> deed;
  };
  std::string name;
  std::string manifest;
  std::vector<Step> steps;
  std::string outcome;  // "Succeeded", "Failed", "Gone"
};

const std::vector<Workload>& Workloads();

}  // namespace backend::sim
