// TF-Spawner's jobs on a cluster. They have no record of their own: the pods that carry one tag are
// the job. Here they are read as a TFJob, so that the daily verbs show them like any other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "backend/cluster/pod.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/cluster.h"
#include "cli/place.h"

namespace cli {

// The workers that these pods are; pods of others are left out. Pure.
std::vector<backend::cluster::Pod> SpawnedPods(const std::vector<base::Json>& pods);

// The job that all pods of one tag make up, with the status that follows from theirs. Pure.
api::Job SpawnedJob(const std::vector<base::Json>& pods, base::Time now);

// The tag of a pod; empty: it is none of TF-Spawner's.
std::string TagOfPod(const base::Json& pod);

// All of a namespace, or of every one with an empty name. None when we may not list pods.
struct Spawned {
  std::string name_space, tag, created;  // created: of the newest pod
  std::vector<base::Json> pods;
};
std::vector<Spawned> FindSpawned(Cluster& cluster, const std::string& name_space);

std::unique_ptr<PlacedJob> OpenSpawned(Cluster& cluster, const std::string& name_space,
                                       const std::string& tag, const std::string& again);

}  // namespace cli
