// What must be true of a job on a cluster at every moment, looked at with each change.
//
//   conditions never contradict each other, counters never go back, restarts keep to their limit
//   an ended job does not change its mind, and gets no more pods
//   no pod for a replica that has done its work; of a gang only one generation runs
//   at the end nothing is held by our finalizer, and nothing is left of a job that is gone
#pragma once

#include <map>
#include <string>

#include "api/status.h"
#include "backend/sim/cluster_world.h"

namespace backend::sim {

class ClusterChecks {
 public:
  // Looks at every change from now on. The world must outlive it.
  explicit ClusterChecks(ClusterWorld& world);
  ClusterChecks(const ClusterChecks&) = delete;

  // The world has come to rest.
  void AtEnd();

 private:
  void SeeJob(const base::Json& job);
  void SeeNewPod(const base::Json& pod);
  void SeePods();

  ClusterWorld& world_;
  std::map<std::string, api::JobStatus> last_;  // by the uid of the job
};

}  // namespace backend::sim
