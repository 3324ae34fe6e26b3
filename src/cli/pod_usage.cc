#include "cli/pod_usage.h"

#include <poll.h>

#include "api/tfjob.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "io/clock.h"
#include "kube/api.h"
#include "kube/exec.h"

namespace cli {
namespace {

using api::ReplicaId;
using backend::cluster::Pod;
using base::Json;
using base::Result;

constexpr int kApartMs = 1000;
constexpr base::Duration kExecPatience = std::chrono::seconds(5);
// Of cgroup v2, then v1. `cat` goes on past those that are not there.
const std::vector<std::string> kFiles = {"/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/memory.current",
                                         "/sys/fs/cgroup/cpuacct/cpuacct.usage",
                                         "/sys/fs/cgroup/memory/memory.usage_in_bytes"};

std::vector<const Pod*> Running(const std::vector<const Pod*>& pods) {
  std::vector<const Pod*> out;
  for (const Pod* pod : pods) {
    if (pod->replica.phase == core::Phase::kRunning) out.push_back(pod);
  }
  return out;
}

// Of metrics.k8s.io; an error when the cluster has none, nothing for a pod that it has none of yet.
Result<std::optional<Used>> FromMetrics(kube::Client& client, const Pod& pod) {
  auto metrics =
      client.Get(kube::Path("metrics.k8s.io/v1beta1", "pods", pod.key.name_space, pod.key.name));
  if (!metrics) return std::unexpected(metrics.error());
  Used out;
  const Json* containers = base::Find(*metrics, "containers");
  if (!containers || !containers->is_array()) return std::nullopt;
  for (const Json& container : containers->get_array()) {
    const Json* usage = base::Find(container, "usage");
    if (!usage) continue;
    // Nano-CPUs are told as "123n".
    out.cpu_percent +=
        static_cast<double>(base::ParseMilliQuantity(base::StringOr(*usage, "cpu")).value_or(0)) /
        10;
    out.memory += base::ParseQuantity(base::StringOr(*usage, "memory")).value_or(0);
  }
  return out;
}

Result<std::string> Cat(kube::Server& server, const Pod& pod) {
  std::vector<std::string> command = {"cat"};
  command.insert(command.end(), kFiles.begin(), kFiles.end());
  auto exec = TRY(kube::Exec::Start(server, {.ns = pod.key.name_space,
                                             .pod = pod.key.name,
                                             .container = std::string(api::kContainerName),
                                             .command = command}));
  std::string out;
  const base::Time patience = io::Now() + kExecPatience;
  while (!exec->status()) {
    if (io::Now() >= patience)
      return std::unexpected(
          base::Error(base::ErrorKind::kUnavailable, pod.key.name + " does not say what it uses"));
    pollfd ready{exec->fd(), static_cast<short>(exec->wants_write() ? POLLIN | POLLOUT : POLLIN),
                 0};
    if (!exec->more()) poll(&ready, 1, 100);
    TRY(exec->Advance([&](int fd, std::string_view bytes) {
      if (fd == 1) out += bytes;
    }));
  }
  return out;
}

Result<std::map<ReplicaId, Used>> FromCgroups(kube::Server& server,
                                              const std::vector<const Pod*>& pods) {
  struct Before {
    CgroupReading reading;
    base::Time when;
  };
  std::map<ReplicaId, Before> before;
  for (const Pod* pod : pods) {
    if (auto reading = ReadCgroupFiles(TRY(Cat(server, *pod))))
      before[pod->replica.id] = {*reading, io::Now()};
  }
  poll(nullptr, 0, kApartMs);
  std::map<ReplicaId, Used> out;
  for (const Pod* pod : pods) {
    Used& used = out[pod->replica.id];
    const auto reading = ReadCgroupFiles(TRY(Cat(server, *pod)));
    const auto old = before.find(pod->replica.id);
    if (!reading || old == before.end()) continue;
    const auto micros = static_cast<double>((io::Now() - old->second.when).count());
    const auto spent = static_cast<double>(reading->cpu_micros - old->second.reading.cpu_micros);
    used = {.cpu_percent = 100 * spent / micros, .memory = reading->memory};
  }
  return out;
}

}  // namespace

std::optional<CgroupReading> ReadCgroupFiles(const std::string& text) {
  std::optional<int64_t> usage_micros;
  std::vector<int64_t> bare;
  for (std::string_view line : base::Split(text, '\n')) {
    if (line.starts_with("usage_usec ")) usage_micros = base::ParseInt(line.substr(11));
    if (auto number = base::ParseInt(line)) bare.push_back(*number);
  }
  if (usage_micros && bare.size() == 1) return CgroupReading{*usage_micros, bare[0]};
  if (!usage_micros && bare.size() == 2) return CgroupReading{bare[0] / 1000, bare[1]};
  return std::nullopt;
}

Result<std::map<ReplicaId, Used>> MeasurePods(kube::Server& server, kube::Client& client,
                                              const std::vector<const Pod*>& pods) {
  const std::vector<const Pod*> running = Running(pods);
  if (running.empty())
    return std::unexpected(base::Error(base::ErrorKind::kUnavailable, "no pod of it runs"));
  std::map<ReplicaId, Used> out;
  for (const Pod* pod : running) {
    auto used = FromMetrics(client, *pod);
    if (!used) return FromCgroups(server, running);
    out[pod->replica.id] = used->value_or(Used());
  }
  return out;
}

}  // namespace cli
