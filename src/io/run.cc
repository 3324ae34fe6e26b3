// Running a process to its end: the pipe from it and its pidfd are waited for together, since
// either may close long before the other.
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/process.h"

namespace io {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;
using std::chrono::steady_clock;

// Reads what there is, and closes `fd` at its end.
Result<> ReadSome(Fd& fd, size_t most, std::string& out) {
  char bytes[4096];
  const ssize_t count = read(fd.get(), bytes, sizeof bytes);
  if (count < 0 && errno == EINTR) return {};
  if (count <= 0) {
    fd.reset();
    return {};
  }
  out.append(bytes, static_cast<size_t>(count));
  if (out.size() > most) return base::Invalid(fmt::format("it said more than {} bytes", most));
  return {};
}

// Until the process has ended and its pipe is empty.
Result<std::string> Follow(Fd pipe, const Fd& process, base::Duration timeout, size_t most) {
  const auto deadline = steady_clock::now() + timeout;
  std::string out;
  bool ended = false;
  while (pipe.valid() || !ended) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    if (left <= 0) {
      return std::unexpected(Error(ErrorKind::kUnavailable,
                                   fmt::format("it did not end within {:.3g} s",
                                               std::chrono::duration<double>(timeout).count())));
    }
    // Descriptors below zero are passed over. Once it has ended, only what is there is read: a
    // child of it may hold the pipe for ever.
    pollfd waits[] = {{.fd = pipe.get(), .events = POLLIN, .revents = 0},
                      {.fd = ended ? -1 : process.get(), .events = POLLIN, .revents = 0}};
    if (poll(waits, 2, ended ? 0 : static_cast<int>(left)) < 0 && errno != EINTR) {
      return base::FromErrno("poll", errno);
    }
    if (waits[0].revents != 0) {
      TRY(ReadSome(pipe, most, out));
    } else if (ended) {
      break;
    }
    ended |= waits[1].revents != 0;
  }
  return out;
}

// How a process ended, as a shell has it; waits for that.
int StatusOf(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Result<Ended> RunToItsEnd(Spawn spawn, base::Duration timeout, size_t most_output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return base::FromErrno("pipe", errno);
  Fd read_end(ends[0]), write_end(ends[1]);
  spawn.output = write_end.get();
  const pid_t pid = TRY(Start(spawn));
  write_end.reset();
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  auto output = Follow(std::move(read_end), process, timeout, most_output);
  if (!output) kill(-pid, SIGKILL);
  const int status = StatusOf(pid);
  if (!output) return std::unexpected(output.error());
  return Ended{.status = status, .output = *std::move(output)};
}

Result<int> RunInSight(const Spawn& spawn, const std::function<bool()>& stop) {
  const pid_t pid = TRY(Start(spawn));
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd wait{.fd = process.get(), .events = POLLIN, .revents = 0};
  // It is looked at now and then, since a signal may come just before the waiting.
  for (bool asked = false; process.valid() && poll(&wait, 1, 100) <= 0;) {
    if (asked || !stop()) continue;
    kill(-pid, SIGTERM);
    asked = true;
  }
  return StatusOf(pid);
}

}  // namespace io
