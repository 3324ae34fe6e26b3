// A server in a pod beside jobs of a cluster, a Deployment and a Service, and a port of this
// machine that leads to it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/cluster.h"

namespace cli {

struct BesideWish {
  std::string name, name_space;
  std::string what;  // for a person: "TensorBoard"
  std::string image;
  std::vector<std::string> command;
  int port = 0;             // it listens on, in its pod and as a Service
  std::string ready_path;   // answers 200 once it is ready
  base::JsonArray mounts;   // of the container
  base::JsonArray volumes;  // of the pod
  base::JsonArray owners;   // with whom it goes
};

// The Deployment and the Service.
std::vector<base::Json> BesideObjects(const BesideWish& wish);

// Makes them, unless they are there, and waits until it is ready; then `tell`s the port of this
// machine, and carries connections until Ctrl-C. What was made is taken away again, unless it is to
// be kept. `local_port` 0: any that is free.
struct ReachOptions {
  int local_port = 0;
  bool keep = false;
  base::Duration patience;
};
base::Result<> Reach(Cluster& cluster, const BesideWish& wish, const ReachOptions& options,
                     const std::function<void(int port)>& tell);

}  // namespace cli
