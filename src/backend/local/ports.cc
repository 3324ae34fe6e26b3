#include "backend/local/ports.h"

#include <algorithm>

#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/strings.h"
#include "io/unix_socket.h"

namespace backend::local {
namespace {

using base::Result;

constexpr int32_t kLowest = 20000;

int32_t EphemeralStart() {
  auto text = io::ReadFile("/proc/sys/net/ipv4/ip_local_port_range");
  if (!text) return 32768;
  const auto first = base::ParseInt(text->substr(0, text->find_first_of(" \t")));
  return first && *first > kLowest + 1000 ? static_cast<int32_t>(*first) : 32768;
}

// As TensorFlow will bind it: on all addresses.
bool IsFree(int32_t port) {
  const io::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  // A port whose last connection lingers in TIME_WAIT is free for TensorFlow's gRPC, which sets
  // SO_REUSEADDR.
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

bool PortLeases::Take(int32_t port) {
  if (held_.contains(port)) return false;
  io::Fd name = io::HoldName(fmt::format("trainyard/port/{}", port));
  if (!name.valid() || !IsFree(port)) return false;
  held_[port] = std::move(name);
  return true;
}

Result<std::vector<int32_t>> PortLeases::LeaseMore(size_t count) {
  const int32_t end = EphemeralStart();
  std::vector<int32_t> ports;
  for (int32_t port = kLowest; ports.size() < count; ++port) {
    if (port >= end) {
      for (int32_t taken : ports) held_.erase(taken);
      return std::unexpected(
          base::Error(base::ErrorKind::kUnavailable,
                      fmt::format("no {} free ports between {} and {}", count, kLowest, end)));
    }
    if (Take(port)) ports.push_back(port);
  }
  return ports;
}

Result<int32_t> PortLeases::LeaseOne(int32_t preferred) {
  if (preferred > 0 && Take(preferred)) return preferred;
  return TRY(LeaseMore(1)).front();
}

Result<std::vector<int32_t>> PortLeases::Lease(size_t count, int32_t first,
                                               const std::vector<int32_t>& preferred) {
  // All as before, or all new: a job that keeps half of its addresses is harder to follow than one
  // with new ones.
  if (first <= 0) {
    if (preferred.size() == count &&
        std::ranges::all_of(preferred, [&](int32_t port) { return Take(port); })) {
      return preferred;
    }
    held_.clear();
    return LeaseMore(count);
  }
  std::vector<int32_t> ports;
  for (size_t i = 0; i < count; ++i) {
    const int32_t port = first + static_cast<int32_t>(i);
    if (port > 65535) {
      return base::Invalid(fmt::format("-p {}: {} replicas need ports beyond 65535", first, count));
    }
    if (!Take(port)) {
      return base::Invalid(
          fmt::format("-p {}: port {} is in use: choose another, or leave -p out", first, port));
    }
    ports.push_back(port);
  }
  return ports;
}

}  // namespace backend::local
