// `top`: what each replica of a live job uses and how fast it trains.
#include <algorithm>
#include <csignal>
#include <map>

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include "base/quantity.h"
#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/live_block.h"
#include "cli/log_tail.h"
#include "cli/log_view.h"
#include "cli/refuse.h"
#include "io/clock.h"
#include "io/process.h"
#include "io/terminal.h"

namespace cli {
namespace {

using api::ReplicaId;

constexpr int kPeriodMs = 1000;
// Behind the median by this much: the one that holds up a collective.
constexpr double kStraggler = 0.8;

struct ReplicaUsage {
  ReplicaId id;
  double cpu_percent = 0;
  int64_t memory = 0;
  std::optional<double> steps_per_second;
  std::optional<int64_t> step;
  bool straggler = false;
};

// The supervisor knows which guard runs which replica.
base::Result<std::map<ReplicaId, pid_t>> Guards(const FoundJob& job) {
  const base::Json answer = TRY(Ask(job, {{"verb", "replicas"}}));
  std::map<ReplicaId, pid_t> out;
  if (const base::Json* map = base::Find(answer, "guards"); map && map->is_object()) {
    for (const auto& [name, pid] : map->get_object()) {
      if (auto id = api::ReplicaIdFrom(name))
        out[*id] = static_cast<pid_t>(pid.is_int64() ? pid.get_int64() : 0);
    }
  }
  return out;
}

std::map<ReplicaId, int64_t> Ticks(const std::map<ReplicaId, pid_t>& guards,
                                   std::map<ReplicaId, int64_t>* memory) {
  std::map<ReplicaId, int64_t> out;
  const std::vector<io::ProcessState> all = io::ListProcesses();
  for (const auto& [id, guard] : guards) {
    for (const io::ProcessState& process : io::DescendantsOf(guard, all)) {
      out[id] += process.cpu_ticks;
      (*memory)[id] += process.resident_bytes;
    }
  }
  return out;
}

void MarkStraggler(std::vector<ReplicaUsage>& usages) {
  std::vector<double> rates;
  for (const ReplicaUsage& u : usages) {
    if (u.steps_per_second && u.id.role == api::Role::kWorker) rates.push_back(*u.steps_per_second);
  }
  if (rates.size() < 2) return;
  std::ranges::sort(rates);
  const double median = rates[rates.size() / 2];
  for (ReplicaUsage& u : usages) {
    u.straggler = u.id.role == api::Role::kWorker && u.steps_per_second &&
                  *u.steps_per_second < kStraggler * median;
  }
}

}  // namespace

int TopCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Refuse(found.error());
  const io::Terminal terminal = io::TerminalOf(1);
  const bool once = args.Has("once") || args.json() || !terminal.is_terminal;
  LogView view(false);
  std::map<ReplicaId, LogTail> tails;
  while (true) {
    auto guards = Guards(*found);
    if (!guards) {
      if (guards.error().kind() != base::ErrorKind::kUnavailable) return Refuse(guards.error());
      fmt::print(stderr, "trainyard: {} is not running: trainyard ps\n", found->name);
      return kExitLost;
    }
    std::map<ReplicaId, int64_t> memory, ignored;
    const base::Time begin = io::Now();
    const auto before = Ticks(*guards, &ignored);
    poll(nullptr, 0, kPeriodMs);
    const auto after = Ticks(*guards, &memory);
    const base::Time now = io::Now();
    const double seconds = std::chrono::duration<double>(now - begin).count();
    for (const auto& [id, guard] : *guards) tails.try_emplace(id, found->dir.LogFile(id));
    for (const TimedChunk& chunk : ReadInOrder(tails, found->dir))
      view.Feed(chunk.id, chunk.bytes, chunk.time);
    view.Take(now);
    std::vector<ReplicaUsage> usages;
    for (const auto& [id, guard] : *guards) {
      ReplicaUsage usage{.id = id};
      const auto old = before.find(id), fresh = after.find(id);
      if (old != before.end() && fresh != after.end()) {
        usage.cpu_percent = 100.0 * static_cast<double>(fresh->second - old->second) /
                            static_cast<double>(sysconf(_SC_CLK_TCK)) / seconds;
      }
      usage.memory = memory[id];
      if (const events::ProgressTracker* tracker = view.progress(id)) {
        const events::Progress progress = tracker->At(now);
        usage.steps_per_second = progress.steps_per_second;
        usage.step = progress.global_step;
      }
      usages.push_back(usage);
    }
    MarkStraggler(usages);
    std::string text = once ? "" : "\x1b[H\x1b[J";
    if (args.json()) {
      base::JsonArray rows;
      for (const ReplicaUsage& u : usages) {
        base::JsonObject row{{"replica", api::Spoken(u.id)},
                             {"cpuPercent", u.cpu_percent},
                             {"memoryBytes", u.memory}};
        if (u.steps_per_second) row["stepsPerSecond"] = *u.steps_per_second;
        if (u.step) row["step"] = *u.step;
        row["straggler"] = u.straggler;
        rows.push_back(std::move(row));
      }
      text =
          base::CompactJson(base::JsonObject{{"job", found->name}, {"replicas", std::move(rows)}}) +
          "\n";
    } else {
      text += fmt::format("{:<12} {:>6} {:>8} {:>8} {:>8}\n", found->name, "CPU", "MEMORY", "STEP",
                          "STEP/S");
      for (const ReplicaUsage& u : usages) {
        text +=
            fmt::format("{:<12} {:>5.0f}% {:>8} {:>8} {:>8}{}\n", api::Spoken(u.id), u.cpu_percent,
                        base::FormatBytes(u.memory), u.step ? std::to_string(*u.step) : "-",
                        u.steps_per_second ? fmt::format("{:.1f}", *u.steps_per_second) : "-",
                        u.straggler ? "  straggler" : "");
      }
    }
    io::WriteOut(1, text);
    if (once) return 0;
  }
}

}  // namespace cli
