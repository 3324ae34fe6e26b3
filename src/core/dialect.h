// What the parts of a job are called in each of the systems whose jobs we run. Pure.
#pragma once

#include <string>

#include "api/tfjob.h"

namespace core {

using api::Dialect;

// Of a replica, and of the service that others find it by: "mnist-worker-0"; ElasticDL says
// "mnist-edljob-worker-0".
std::string ReplicaName(const api::Job& job, api::ReplicaId id);

// Of the master of a job, and of the service that its replicas find it by: "mnist-master";
// ElasticDL says "elasticdl-mnist-master".
std::string MasterName(const api::Job& job);

// Where a master on a cluster hands out data, as ElasticDL has it.
inline constexpr int32_t kMasterPort = 50001;

// Where the replicas of a role listen, as ElasticDL has it.
int32_t ElasticDlPort(api::Role role);

// Whether its programs may import ElasticDL's client (python/site/sitecustomize.py).
bool UsesClient(const api::Job& job);

}  // namespace core
