#include "io/signals.h"

#include <csignal>

#include <sys/signalfd.h>
#include <unistd.h>

namespace io {

Signals::Signals(std::initializer_list<int> which) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : which) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  fd_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::vector<int> Signals::Take() const {
  std::vector<int> out;
  signalfd_siginfo info;
  while (read(fd_.get(), &info, sizeof info) == sizeof info)
    out.push_back(static_cast<int>(info.ssi_signo));
  return out;
}

}  // namespace io
