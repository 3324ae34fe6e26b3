// ElasticDL's jobs: from the options of `elasticdl train` to a TFJob in its dialect, and to the
// objects that start it on a cluster.
//
// Every replica runs the same command, by bash. With --need_tf_config and parameter servers there
// is a chief, which nobody asks for by an option. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/tfjob.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/elasticdl_args.h"
#include "cli/elasticdl_grammar.h"

namespace cli {

// The pod in which the job is kept on a cluster.
struct EdlMaster {
  std::string image;
  std::string image_pull_policy;
  std::string priority_class;
  base::JsonObject requests, limits;
};

struct EdlJob {
  api::Job job;
  EdlMaster master;
  std::vector<EdlVolume> volumes;
  EdlClusterSpec changes;
};

// All that can be known from the options.
base::Result<EdlJob> MakeEdlJob(const EdlArgs& args);

// What to make for it, in this order: the job, the service by which replicas find the master, and
// the master, which makes the rest.
std::vector<base::Json> EdlObjects(const EdlJob& job);

// The options that were given and mean nothing without a cluster.
std::vector<std::string> GivenForClusters(const EdlArgs& args);

}  // namespace cli
