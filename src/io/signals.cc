#include "io/signals.h"

#include <csignal>

#include <sys/signalfd.h>
#include <unistd.h>

namespace io {

bool IsIgnored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

Signals::Signals(std::initializer_list<int> which) {
  sigset_t set;
  sigemptyset(&set);
  // A blocked signal is delivered to a signalfd even if it is ignored.
  for (int signal : which) {
    if (!IsIgnored(signal)) sigaddset(&set, signal);
  }
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
