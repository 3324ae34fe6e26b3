// Paths that a process and its children see elsewhere than everybody else does.
#pragma once

namespace guard {

struct Mount {
  const char* from;  // a directory or file, as it is now
  const char* to;    // absolute; need not be there
};

// Moves this process, which has one thread, into a mount namespace of its own, in which each `from`
// is at `to` too; everything else stays as it is, and nothing of the machine is changed. Returns
// null, or what went wrong, in a buffer of its own: the process is of no use then.
const char* EnterMounts(const Mount* mounts, int count);

}  // namespace guard
