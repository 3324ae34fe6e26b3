// Where a job on a cluster keeps what it makes, and pods that read it.
#pragma once

#include <string>

#include "backend/cluster/objects.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/args.h"
#include "cli/cluster.h"

namespace cli {

using backend::cluster::kOutputUser;

struct KeptOutput {
  std::string url;          // of an object store; empty: on a claim
  std::string claim, path;  // the path within the claim
  std::string image;        // that the job ran in, or --image
  bool plain = false;       // the job arranges the claim as it likes, not in our folders
};

// Of a job, or of one that is gone the claim that was made for it.
base::Result<KeptOutput> OutputThere(Cluster& cluster, const Args& args,
                                     const std::string& name_space, const std::string& name);

// The spec of a pod that reads claims as nobody in particular: admitted under Pod Security
// "restricted".
base::JsonObject ReaderPod(base::JsonObject container, base::JsonArray volumes);
base::JsonObject ClaimVolume(const std::string& name, const std::string& claim);

}  // namespace cli
