// The supervisor: hosts one job on this machine until it has ended.
//
// One thread, one poll loop: guards, log files, signals, requests of other commands, time. Nothing
// wakes it while the replicas are quiet. Shut-down order, written once here: status terminal ->
// replicas stopped -> last lines shown -> ending told -> socket removed -> lock released.
#pragma once

#include <memory>
#include <string>

#include "api/tfjob.h"
#include "backend/local/local_backend.h"
#include "base/result.h"

namespace cli {

// Where a job's supervisor listens for requests of other commands; empty when the directory for it
// belongs to another user.
std::string SocketPath(const std::string& name_space, const std::string& name);

struct SuperviseOptions {
  bool quiet = false;  // detached: nobody looks
  bool raw = false;    // log lines as they are
  bool json = false;   // one object a line instead of a display
};

// Runs the job to its end and returns the exit status of `trainyard run`.
int Supervise(std::unique_ptr<backend::local::LocalBackend> world, api::Job job,
              const SuperviseOptions& options);

}  // namespace cli
