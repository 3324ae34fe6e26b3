// Processes of this machine: starting one with exact descriptors, and reading /proc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/time.h"
#include "io/files.h"

namespace io {

struct Spawn {
  std::vector<std::string> argv;  // argv[0] is a path
  std::vector<std::string> env;   // "KEY=value"
  std::string directory;          // working directory; empty: ours
  int output = -1;                // becomes 1 and 2
  int error = -1;                 // becomes 2 instead
  std::vector<int> extra;         // become 3, 4, …
};

// Starts a process in a session of its own, with standard input from /dev/null, default signal
// handling and no other descriptors than those named.
base::Result<pid_t> Start(const Spawn& spawn);

struct Ended {
  int status = 0;  // as a shell has it: 128 + the number of the signal that ended it
  std::string output;
};

// Starts a process and waits for its end. One that takes longer than `timeout`, or says more than
// `most_output` bytes, is killed with its process group, and that is an error. spawn.output is not
// used. (run.cc)
base::Result<Ended> RunToItsEnd(Spawn spawn, base::Duration timeout, size_t most_output);

// Starts a process that writes where we write, and waits for its end: the status as above. Once
// `stop` holds, its process group is asked to end. (run.cc)
base::Result<int> RunInSight(const Spawn& spawn, const std::function<bool()>& stop);

// A program of ours that lies beside this one, in libexec/: in the build tree, or where a package
// puts it. kNotFound: the installation is broken.
base::Result<std::string> HelperProgram(const std::string& name);

struct ProcessState {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = ' ';
  int64_t cpu_ticks = 0;  // user + system, in clock ticks
  int64_t resident_bytes = 0;
};

// All processes that can be seen, unordered.
std::vector<ProcessState> ListProcesses();
// Those of `all` that descend from `root`, without it.
std::vector<ProcessState> DescendantsOf(pid_t root, const std::vector<ProcessState>& all);

// Processes, this one excepted, that were started with this "KEY=value" in their environment, as
// far as we may see it.
std::vector<pid_t> ProcessesWith(const std::string& entry);

// The environment of this process as "KEY=value".
std::vector<std::string> Environment();

}  // namespace io
