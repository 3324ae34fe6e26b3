// Signals as something to poll for, in place of handlers that may run anywhere.
#pragma once

#include <initializer_list>
#include <vector>

#include "io/files.h"

namespace io {

// Returns whether this process ignores the signal, as after `nohup`. Whoever started the process
// chose that, so nothing may catch the signal then.
bool IsIgnored(int signal);

class Signals {
 public:
  // Of none.
  Signals() = default;
  // From now on these come here, except for those that are ignored: they are blocked in this thread
  // and in those that it starts. A pipe that nobody reads is an error of the write, not the end of
  // this process.
  explicit Signals(std::initializer_list<int> which);

  // Readable when one has come.
  int fd() const { return fd_.get(); }
  // Those that have come since. Does not wait.
  std::vector<int> Take() const;

 private:
  Fd fd_;
};

}  // namespace io
