#include "backend/local/ports.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/strings.h"
#include "io/files.h"

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

// Leases are lines "PORT JOBDIR"; those whose job has no living supervisor are dropped on the way.
std::map<int32_t, std::string> LiveLeases(const std::string& file, const std::string& own) {
  std::map<int32_t, std::string> leases;
  auto text = io::ReadFile(file);
  if (!text) return leases;
  std::map<std::string, bool> alive;
  for (std::string_view line : base::Split(*text, '\n')) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const auto port = base::ParseInt(line.substr(0, space));
    const std::string job(line.substr(space + 1));
    if (!port || job == own) continue;
    if (!alive.contains(job)) alive[job] = io::Lock::IsHeld(job + "/lock");
    if (alive[job]) leases[static_cast<int32_t>(*port)] = job;
  }
  return leases;
}

// The next free ports from the bottom of the range.
Result<> TakeFree(size_t count, const std::map<int32_t, std::string>& leases,
                  std::vector<int32_t>& ports) {
  const int32_t end = EphemeralStart();
  for (int32_t port = kLowest; ports.size() < count; ++port) {
    if (port >= end) {
      return std::unexpected(
          base::Error(base::ErrorKind::kUnavailable,
                      fmt::format("no {} free ports between {} and {}", count, kLowest, end)));
    }
    if (!leases.contains(port) && std::ranges::find(ports, port) == ports.end() && IsFree(port)) {
      ports.push_back(port);
    }
  }
  return {};
}

Result<> Save(const std::string& file, const std::map<int32_t, std::string>& leases) {
  std::string text;
  for (const auto& [port, job] : leases) text += fmt::format("{} {}\n", port, job);
  return io::WriteFile(file, text);
}

}  // namespace

Result<std::vector<int32_t>> LeasePorts(const std::string& home, const std::string& job_dir,
                                        size_t count, int32_t first,
                                        const std::vector<int32_t>& preferred) {
  const std::string file = home + "/.ports";
  const io::Lock lock = TRY(io::Lock::Wait(home + "/.ports.lock"));
  std::map<int32_t, std::string> leases = LiveLeases(file, job_dir);
  const auto usable = [&](int32_t port) { return !leases.contains(port) && IsFree(port); };
  std::vector<int32_t> ports;
  if (first > 0) {
    for (size_t i = 0; i < count; ++i) {
      const int32_t port = first + static_cast<int32_t>(i);
      if (port > 65535) {
        return base::Invalid(
            fmt::format("-p {}: {} replicas need ports beyond 65535", first, count));
      }
      if (!usable(port)) {
        return base::Invalid(
            fmt::format("-p {}: port {} is in use: choose another, or leave -p out", first, port));
      }
      ports.push_back(port);
    }
  } else {
    // All as before, or all new: a job that keeps half of its addresses is harder to follow than
    // one with new ones.
    if (preferred.size() == count && std::ranges::all_of(preferred, usable)) ports = preferred;
    TRY(TakeFree(count, leases, ports));
  }
  for (int32_t port : ports) leases[port] = job_dir;
  TRY(Save(file, leases));
  return ports;
}

Result<std::vector<int32_t>> LeaseMorePorts(const std::string& home, const std::string& job_dir,
                                            size_t count, const std::vector<int32_t>& taken) {
  const std::string file = home + "/.ports";
  const io::Lock lock = TRY(io::Lock::Wait(home + "/.ports.lock"));
  std::map<int32_t, std::string> leases = LiveLeases(file, job_dir);
  for (int32_t port : taken) leases[port] = job_dir;
  std::vector<int32_t> ports;
  TRY(TakeFree(count, leases, ports));
  for (int32_t port : ports) leases[port] = job_dir;
  TRY(Save(file, leases));
  return ports;
}

}  // namespace backend::local
