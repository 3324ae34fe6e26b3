// One process does this for the whole leaf. The supervisor cannot, since it may be killed. Its
// guards cannot either: there may be none, and a guard sees its socket close before the kernel has
// taken the dying supervisor out of the leaf, so none of them knows that it is the last one.
#include "leaf.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace guard {
namespace {

constexpr int kFirstPauseMs = 5;
constexpr int kLongestPauseMs = 1000;

void WaitForEnd(int control) {
  char ignored[64];
  while (true) {
    const ssize_t size = read(control, ignored, sizeof ignored);
    if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN)) return;
  }
}

// One process a line; what cannot be read counts as empty, since there is nothing to wait for.
bool HasOthers(const char* leaf) {
  char path[4096], text[256];
  snprintf(path, sizeof path, "%s/cgroup.procs", leaf);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t size = read(fd, text, sizeof text);
  close(fd);
  return size > 0 && std::count(text, text + size, '\n') > 1;
}

void WriteAbove(const char* leaf, const char* file, const char* text) {
  char path[4096];
  snprintf(path, sizeof path, "%s/../%s", leaf, file);
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!write(fd, text, strlen(text));
  close(fd);
}

}  // namespace

void RemoveLeafAfterUse(const char* leaf, int control) {
  WaitForEnd(control);
  for (int pause = kFirstPauseMs; HasOthers(leaf); pause = std::min(2 * pause, kLongestPauseMs)) {
    poll(nullptr, 0, pause);
  }
  WriteAbove(leaf, "cgroup.subtree_control", "-memory -cpu");
  WriteAbove(leaf, "cgroup.procs", "0");
  rmdir(leaf);
}

}  // namespace guard
