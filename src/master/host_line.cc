#include "master/host_line.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/clock.h"
#include "master/master.h"

namespace master {
namespace {

using base::Result;
using std::chrono::milliseconds;

constexpr base::Duration kPatience = milliseconds(200);
constexpr base::Duration kLongestSleep = std::chrono::seconds(30);
constexpr size_t kMostLine = 16 << 20;

}  // namespace

Result<std::unique_ptr<HostLine>> HostLine::Open(int fd) {
  io::Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return base::FromErrno("make an eventfd", errno);
  return std::unique_ptr<HostLine>(new HostLine(io::Fd(fd), std::move(wake)));
}

void HostLine::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = write(wake_.get(), &one, sizeof one);  // full is awake too
}

void HostLine::Changed(bool urgent) {
  {
    const std::lock_guard lock(mutex_);
    if (changed_ && (urgent_ || !urgent)) return;
    changed_ = true;
    urgent_ |= urgent;
  }
  Wake();
}

Result<> HostLine::Serve(Master& master, uint16_t port) {
  for (;;) {
    const base::Time now = io::Now();
    base::Time next = std::min(now + kLongestSleep, master.NextTick());
    {
      const std::lock_guard lock(mutex_);
      out_ += std::exchange(said_, "");
    }
    if (!TRY(Write())) return {};
    bool due = !owed_.empty();
    {
      const std::lock_guard lock(mutex_);
      due |= changed_ && (urgent_ || now - last_ >= kPatience);
      if (changed_ && !due) next = std::min(next, last_ + kPatience);
      // The answer wakes us, and so does a host that reads again: until then nothing piles up.
      if (asking_ || !out_.empty()) due = false;
    }
    if (due) Ask(master, port);

    std::array<pollfd, 2> fds{{{.fd = line_.get(), .events = POLLIN, .revents = 0},
                               {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
    if (!out_.empty()) fds[0].events |= POLLOUT;
    const auto sleep = std::chrono::ceil<milliseconds>(std::max(next - now, base::Duration(0)));
    if (poll(fds.data(), fds.size(), static_cast<int>(sleep.count())) < 0 && errno != EINTR)
      return base::FromErrno("poll", errno);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
    if (fds[0].revents & ~POLLOUT)
      if (!TRY(Read(master))) return {};
    if (io::Now() >= next) master.Tick();
  }
}

void HostLine::Ask(Master& master, uint16_t port) {
  {
    const std::lock_guard lock(mutex_);
    changed_ = urgent_ = false;
    asking_ = true;
  }
  last_ = io::Now();
  // Each message is answered, by one and the same state; one that nobody asked for has the last
  // number.
  std::vector<int64_t> seqs = std::exchange(owed_, {});
  if (seqs.empty()) seqs.push_back(seq_);
  master.Report([this, seqs = std::move(seqs), port](ledger::DataReport data) {
    std::string lines;
    ledger::MasterMessage message{.port = port, .data = std::move(data)};
    for (const int64_t seq : seqs) {
      message.seq = seq;
      lines += ledger::Encode(message);
      message.data.events.clear();
    }
    {
      const std::lock_guard lock(mutex_);
      said_ += lines;
      asking_ = false;
    }
    Wake();
  });
}

// Both return false when the host is gone.

Result<bool> HostLine::Read(Master& master) {
  std::array<char, 64 << 10> bytes;
  const ssize_t got = recv(line_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) return false;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got < 0) return base::FromErrno("read from the job's host", errno);
  in_.append(bytes.data(), static_cast<size_t>(got));
  size_t begin = 0;
  for (size_t end; (end = in_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto message =
        TRY_AS("the job's host",
               ledger::DecodeHostMessage(std::string_view(in_).substr(begin, end - begin)));
    master.Heed(message);
    owed_.push_back(seq_ = message.seq);
  }
  in_.erase(0, begin);
  if (in_.size() > kMostLine) return base::Invalid("the job's host sends a line without an end");
  return true;
}

Result<bool> HostLine::Write() {
  while (!out_.empty()) {
    const ssize_t sent = send(line_.get(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return false;
    if (sent < 0) return base::FromErrno("write to the job's host", errno);
    out_.erase(0, static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace master
