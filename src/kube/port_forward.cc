#include "kube/port_forward.h"

#include <algorithm>
#include <cerrno>

#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strings.h"
#include "kube/api.h"
#include "kube/socket.h"

namespace kube {
namespace {

using base::Result;
using base::Time;
using namespace std::chrono_literals;

constexpr size_t kMostConnections = 64;
constexpr size_t kMostWaiting = size_t{1} << 20;  // bytes of one direction
constexpr size_t kMostInMessage = 32 << 10;
constexpr base::Duration kQuiet = 5s;
constexpr char kData = 0, kErrors = 1;

}  // namespace

struct PortForward::Bridge {
  io::Fd local;
  std::unique_ptr<io::WebSocket> socket;
  std::string to_local;      // what the local side has not taken yet
  bool begun[2] = {};        // the channel's first message, its port number, has come
  bool local_ended = false;  // it has said its last
  Time last_sign{};          // that the pod sent something
  std::string trouble;

  bool HasRoom() const { return to_local.size() < kMostWaiting; }
  bool WantsLocal() const { return !local_ended && socket->queued() < kMostWaiting; }

  void Take(std::string_view message);
  bool ReadLocal();
  bool WriteLocal();
};

void PortForward::Bridge::Take(std::string_view message) {
  if (message.empty() || (message[0] != kData && message[0] != kErrors)) return;
  const auto channel = static_cast<size_t>(message[0]);
  message.remove_prefix(1);
  if (!std::exchange(begun[channel], true)) return;
  if (channel == kData) {
    to_local += message;
  } else if (!message.empty()) {
    trouble = base::OneLine(message, 600);
  }
}

// False when the local side is gone.
bool PortForward::Bridge::ReadLocal() {
  char bytes[kMostInMessage];
  while (WantsLocal()) {
    const ssize_t count = recv(local.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (count > 0) {
      socket->Send(kData + std::string(bytes, static_cast<size_t>(count)));
    } else if (count == 0) {
      local_ended = true;
    } else {
      return errno == EAGAIN || errno == EINTR;
    }
  }
  return true;
}

bool PortForward::Bridge::WriteLocal() {
  while (!to_local.empty()) {
    const ssize_t count =
        send(local.get(), to_local.data(), to_local.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    to_local.erase(0, static_cast<size_t>(count));
  }
  return true;
}

PortForward::PortForward(Server& server, Target target)
    : server_(server), target_(std::move(target)) {}

PortForward::~PortForward() = default;

Result<std::unique_ptr<PortForward>> PortForward::Listen(Server& server, Target target,
                                                         int local_port) {
  std::unique_ptr<PortForward> out(new PortForward(server, std::move(target)));
  out->listener_ = io::Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  setsockopt(out->listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = htons(static_cast<uint16_t>(local_port)),
                      .sin_addr = {htonl(INADDR_LOOPBACK)},
                      .sin_zero = {}};
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (bind(out->listener_.get(), any, size) != 0 || listen(out->listener_.get(), 64) != 0 ||
      getsockname(out->listener_.get(), any, &size) != 0) {
    return base::FromErrno(fmt::format("listen on 127.0.0.1:{}", local_port), errno);
  }
  out->port_ = ntohs(address.sin_port);
  return out;
}

std::vector<pollfd> PortForward::Waits() const {
  std::vector<pollfd> out;
  const auto add = [&](int fd, bool read, bool write) {
    const int events = (read ? POLLIN : 0) | (write ? POLLOUT : 0);
    if (events) out.push_back({.fd = fd, .events = static_cast<short>(events), .revents = 0});
  };
  add(listener_.get(), bridges_.size() < kMostConnections, false);
  for (const Bridge& bridge : bridges_) {
    add(bridge.local.get(), bridge.WantsLocal(), !bridge.to_local.empty());
    add(bridge.socket->fd(), bridge.HasRoom(), bridge.socket->wants_write());
  }
  return out;
}

std::optional<Time> PortForward::next() const {
  std::optional<Time> soonest;
  for (const Bridge& bridge : bridges_) {
    Time due = Time::max();
    if (bridge.local_ended) due = bridge.last_sign + kQuiet;
    if (bridge.socket->more() && bridge.HasRoom()) due = bridge.last_sign;
    if (due != Time::max() && (!soonest || due < *soonest)) soonest = due;
  }
  return soonest;
}

void PortForward::Accept(Time now) {
  while (bridges_.size() < kMostConnections) {
    io::Fd local(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!local.valid()) return;
    const std::string path = WithQuery(Path("v1", "pods", target_.ns, target_.pod, "portforward"),
                                       {{"ports", std::to_string(target_.port)}});
    auto socket = OpenSocket(server_, path, {"v4.channel.k8s.io"});
    if (!socket) {
      trouble_ = socket.error().text();
      continue;
    }
    Bridge& bridge = bridges_.emplace_back();
    bridge.local = std::move(local);
    bridge.socket = *std::move(socket);
    bridge.last_sign = now;
  }
}

// False when it is over.
bool PortForward::Move(Bridge& bridge, Time now) {
  if (!bridge.ReadLocal()) return false;
  const auto went = bridge.socket->Advance(
      [&](std::string_view message) {
        bridge.last_sign = now;
        bridge.Take(message);
      },
      bridge.HasRoom());
  const bool local_is_there = bridge.WriteLocal();
  if (!bridge.trouble.empty()) trouble_ = bridge.trouble;
  if (!went) trouble_ = went.error().text();
  if (!local_is_there || !bridge.trouble.empty()) return false;
  if (bridge.socket->closed()) return !bridge.to_local.empty();
  const bool quiet = now >= bridge.last_sign + kQuiet;
  return !bridge.local_ended || bridge.socket->wants_write() || !quiet;
}

void PortForward::Advance(Time now) {
  Accept(now);
  std::erase_if(bridges_, [&](Bridge& bridge) { return !Move(bridge, now); });
}

}  // namespace kube
