// One life of a job on a simulated cluster, and what must be true of it.
//
// A life without faults is the measure for the same life with them: at the end the same objects
// must be there, with the same status but for times and uids, and the operator must have created
// and deleted each of them as often. A right end that was reached by a needless deletion is wrong.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/sim/cluster_world.h"
#include "backend/sim/faults.h"
#include "backend/sim/traffic.h"
#include "backend/sim/workloads.h"

namespace backend::sim {

struct ClusterLife {
  std::string finding;  // empty: nothing wrong was seen
  std::string trace;    // when asked for
  std::string end;      // the objects that are left, without times and uids, a line each
  std::vector<std::string> writes;
  std::map<std::string, Traffic::Count> counts;
  int64_t steps = 0;
};

struct Circumstances {
  uint64_t seed = 1;
  Plan plan;
  Weather weather;
  bool trace = false;
  // Further arrangements, before anything happens.
  std::function<void(ClusterWorld&)> arrange;
};

ClusterLife Live(const Workload& workload, const Circumstances& circumstances);

// What is wrong with a life, by itself or measured by one without faults; empty: nothing.
// `only_end`: not by how often things were made and deleted on the way.
std::string Compared(const ClusterLife& life, const ClusterLife& measure, bool only_end = false);

}  // namespace backend::sim
