#include "cli/usage.h"

#include <algorithm>

#include <unistd.h>

#include "io/process.h"

namespace cli {

using api::ReplicaId;

std::map<ReplicaId, Used> ProcessMeter::Measure(const std::map<ReplicaId, pid_t>& guards,
                                                base::Time now) {
  const std::vector<io::ProcessState> all = io::ListProcesses();
  const double seconds = std::chrono::duration<double>(now - measured_).count();
  const auto per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  std::map<ReplicaId, Used> out;
  std::map<ReplicaId, int64_t> ticks;
  for (const auto& [id, guard] : guards) {
    Used& used = out[id];
    for (const io::ProcessState& process : io::DescendantsOf(guard, all)) {
      ticks[id] += process.cpu_ticks;
      used.memory += process.resident_bytes;
    }
    if (const auto before = ticks_.find(id); before != ticks_.end() && seconds > 0) {
      const auto spent = static_cast<double>(ticks[id] - before->second) / per_second;
      used.cpu_percent = std::max(0.0, 100 * spent / seconds);
    }
  }
  ticks_ = std::move(ticks);
  measured_ = now;
  return out;
}

}  // namespace cli
