// From a plan to the objects that a cluster is asked to make: the job, and what it needs first.
#pragma once

#include <string>
#include <vector>

#include "api/tfjob.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/args.h"
#include "cli/bundle.h"
#include "cli/plan.h"

namespace cli {

struct ClusterPlan {
  Plan plan;
  Code code;   // empty for a manifest
  Values env;  // of the env file
  OutputWish output;
  bool makes_claim = false;  // one of our own, for its output
  bool wants_output = true;  // a manifest has its own volumes unless --output is given
  bool shared = false;       // several replicas share the claim
  std::string image;         // for the header
};

// All that can be known without asking the cluster.
base::Result<ClusterPlan> MakeClusterPlan(const Args& args);

// Once the name is known. Objects that the job needs come first, and the job itself last.
struct ClusterObjects {
  std::vector<base::Json> first;
  base::Json job;
};
ClusterObjects ObjectsOf(const ClusterPlan& plan, const std::string& name,
                         const std::string& name_space);

}  // namespace cli
