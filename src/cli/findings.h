// Why pods do not start, in the cluster's own words, and what helps. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/tfjob.h"
#include "backend/cluster/pod.h"
#include "base/json.h"
#include "cli/place.h"

namespace cli {

// What helps against `reason` and `message` of a pod that does not start, or of one that the server
// refuses; empty: nothing that we know of.
std::string FixFor(const std::string& reason, const std::string& message);

// One for each different trouble, the replicas that have it named together.
std::vector<Trouble> TroublesOf(const std::vector<const backend::cluster::Pod*>& pods);

// Replicas that the job wants and that have no pod.
std::vector<api::ReplicaId> MissingOf(const api::Job& job,
                                      const std::vector<const backend::cluster::Pod*>& pods);

// From the events of a job: refusals of pods that are not there although the job wants them.
std::vector<Trouble> Refusals(const api::Job& job,
                              const std::vector<const backend::cluster::Pod*>& pods,
                              const std::vector<base::Json>& events);

}  // namespace cli
