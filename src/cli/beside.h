// A server in a pod beside jobs of a cluster, a Deployment and a Service, and a port of this
// machine that leads to it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/cluster.h"
#include "cli/findings.h"

namespace cli {

struct BesideWish {
  std::string name, name_space;
  std::string what;  // for a person: "TensorBoard"
  PodKind kind = PodKind::kReader;
  std::string image;
  std::vector<std::string> command;
  struct Port {
    std::string name;
    int number = 0;  // it listens on, in its pod and as a Service
    int local = 0;   // of this machine; 0: any that is free
  };
  std::vector<Port> ports;
  std::string ready_path;  // on the last of the ports, answers 200 once it is ready
  std::string ingress;  // the host name by which others reach the last of the ports; may be empty
  base::JsonArray mounts;   // of the container
  base::JsonArray volumes;  // of the pod
  base::JsonArray owners;   // with whom it goes
};

// The Deployment, the Service, and the Ingress if there is to be one.
std::vector<base::Json> BesideObjects(const BesideWish& wish);

enum class Stay {
  kUntilCtrlC,  // what was made is taken away again
  kAfterCtrlC,
  kDetached,  // no connections are carried
};

// Makes them, unless they are there, and waits until it is ready; then `tell`s the ports of this
// machine, and carries connections until Ctrl-C.
base::Result<> Reach(Cluster& cluster, const BesideWish& wish, Stay stay,
                     const std::function<void(const std::vector<int>& ports)>& tell);

}  // namespace cli
