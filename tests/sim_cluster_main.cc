// Lives of jobs on a simulated cluster, under the real operator.
//
//   sim_cluster                                     every workload, every write, every kind of
//   fault sim_cluster --workload W [--write K --fault F] [--trace]     one of them
#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/core.h>

#include "backend/sim/cluster_life.h"
#include "base/strings.h"

namespace {

using namespace backend::sim;

Fault FaultNamed(const std::string& name) {
  for (const Fault fault : kAllFaults) {
    if (name == Name(fault)) return fault;
  }
  return Fault::kNone;
}

}  // namespace

int main(int argc, char** argv) {
  std::string workload;
  Plan plan;
  bool trace = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--trace") {
      trace = true;
      continue;
    }
    ++i;
    if (flag == "--workload") {
      workload = value;
    } else if (flag == "--write") {
      plan.write = static_cast<int32_t>(base::ParseInt(value).value_or(-1));
    } else if (flag == "--fault") {
      plan.fault = FaultNamed(value);
    } else {
      fmt::print(stderr, "usage: {} [--workload W [--write K --fault F] [--trace]]\n", argv[0]);
      return 2;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  int64_t lives = 0, wrong = 0, steps = 0;
  for (const Workload& one : Workloads()) {
    if (!workload.empty() && one.name != workload) continue;
    const ClusterLife measure = Live(one, {.trace = trace && plan.write < 0});
    if (!measure.trace.empty()) fmt::print("{}{}", measure.trace, measure.end);
    if (!measure.finding.empty()) {
      fmt::print("{}: {}   (again: sim_cluster --workload {} --trace)\n", one.name, measure.finding,
                 one.name);
      ++wrong;
      continue;
    }
    int64_t before = wrong;
    for (int32_t k = 0; k < static_cast<int32_t>(measure.writes.size()); ++k) {
      for (const Fault fault : kAllFaults) {
        if (plan.write >= 0 && (plan.write != k || plan.fault != fault)) continue;
        const ClusterLife life = Live(one, {.plan = {k, fault}, .trace = trace});
        if (trace) fmt::print("{}{}", life.trace, life.end);
        ++lives;
        steps += life.steps;
        if (const std::string found = Compared(life, measure); !found.empty()) {
          ++wrong;
          fmt::print(
              "{} at #{} {}: {}: {}   (again: sim_cluster --workload {} --write {} "
              "--fault {} --trace)\n",
              one.name, k, measure.writes[static_cast<size_t>(k)], Name(fault), found, one.name, k,
              Name(fault));
        }
      }
    }
    fmt::print("{}: {} writes, {} wrong\n", one.name, measure.writes.size(), wrong - before);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{} lives with a fault, {} steps, {:.1f} s, {} wrong\n", lives, steps, seconds, wrong);
  return wrong == 0 ? 0 : 1;
}
