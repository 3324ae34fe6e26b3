// The pod in which an ElasticDL job is kept on a cluster.
#pragma once

#include "api/tfjob.h"
#include "base/result.h"
#include "cli/cluster.h"

namespace cli {

// As in ElasticDL the master's pod owns the job: what is in the job, and the service by which the
// master is found, go with that pod, whoever deletes it.
base::Result<> GiveToMaster(const Cluster& cluster, const api::Job& job);

}  // namespace cli
