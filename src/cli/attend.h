// Looking after a job on a cluster from here: its log lines and its state, until it has ended.
//
// The job does not need us: whoever looks may leave and come back. Ctrl-C stops the job, as it
// would on this machine; a terminal that closes leaves it running.
#pragma once

#include <string>

#include "cli/cluster.h"

namespace cli {

struct AttendOptions {
  bool raw = false;   // log lines as they are
  bool json = false;  // one object a line instead of a display
  std::string again;  // what a command must say to mean the same place
};

// Returns the exit status of `trainyard run`.
int Attend(Cluster& cluster, Store store, const std::string& name_space, const std::string& name,
           const AttendOptions& options);

}  // namespace cli
