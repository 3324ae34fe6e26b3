// Reads from a cluster why pods do not start; findings.h decides what that means.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "base/result.h"
#include "cli/cluster.h"
#include "cli/findings.h"

namespace cli {

// The warnings about pods of a namespace, oldest first. Empty when we may not read events.
std::vector<Warning> WarningsAboutPods(Cluster& cluster, const std::string& name_space);

// Pods that a Deployment or a Job makes.
struct Workload {
  std::string name_space;
  std::string selector;  // of its pods
  std::string path;      // of the Deployment or Job; empty: somebody else makes the pods
  PodKind kind = PodKind::kServer;
};

// Why no pod of a workload runs, and the cure; nothing when one does, or nothing is known.
std::optional<Trouble> WhyNotRunning(Cluster& cluster, const Workload& workload);

// Why nobody has taken up a job: what is wrong with the operator, or with the job's master.
// `again` is what a command must say to mean the same cluster.
Trouble WhyNobodyKeeps(Cluster& cluster, Store store, const api::Job& job,
                       const std::string& again);
// What is wrong with the master of a job that was taken up before; nothing: it runs.
std::optional<Trouble> MasterTrouble(Cluster& cluster, const api::Job& job);

}  // namespace cli
