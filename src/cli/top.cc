// `top`: what each replica of a live job uses and how fast it trains.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "base/quantity.h"
#include "cli/commands.h"
#include "cli/log_view.h"
#include "cli/place.h"
#include "cli/refuse.h"
#include "io/clock.h"
#include "io/terminal.h"

namespace cli {
namespace {

using api::ReplicaId;

// Behind the median by this much: the one that holds up a collective.
constexpr double kStraggler = 0.8;

struct ReplicaUsage {
  ReplicaId id;
  double cpu_percent = 0;
  int64_t memory = 0;
  std::optional<double> steps_per_second;
  std::optional<int64_t> step;
  std::optional<api::Share> sharing;  // of an elastic job's data
  bool straggler = false;
};

// Of data in shards what counts is how fast records go through.
std::optional<double> PaceOf(const ReplicaUsage& u) {
  if (u.id.role != api::Role::kWorker) return std::nullopt;
  if (!u.sharing) return u.steps_per_second;
  return u.sharing->done > 0 ? std::optional(u.sharing->records_per_second) : std::nullopt;
}

void MarkStraggler(std::vector<ReplicaUsage>& usages) {
  std::vector<double> rates;
  for (const ReplicaUsage& u : usages) {
    if (const auto pace = PaceOf(u)) rates.push_back(*pace);
  }
  if (rates.size() < 2) return;
  std::ranges::sort(rates);
  const double median = rates[rates.size() / 2];
  for (ReplicaUsage& u : usages) {
    const auto pace = PaceOf(u);
    u.straggler = pace && *pace < kStraggler * median;
  }
}

// The log lines tell how fast each replica trains.
std::vector<ReplicaUsage> Usages(const std::map<ReplicaId, Used>& used, const LogView& view,
                                 base::Time now) {
  std::vector<ReplicaUsage> out;
  for (const auto& [id, of_one] : used) {
    ReplicaUsage usage{.id = id,
                       .cpu_percent = of_one.cpu_percent,
                       .memory = of_one.memory,
                       .sharing = of_one.sharing};
    if (const events::ProgressTracker* tracker = view.progress(id)) {
      const events::Progress progress = tracker->At(now);
      usage.steps_per_second = progress.steps_per_second;
      usage.step = progress.global_step;
    }
    out.push_back(usage);
  }
  MarkStraggler(out);
  return out;
}

std::string InJson(const std::string& job, const std::vector<ReplicaUsage>& usages) {
  base::JsonArray rows;
  for (const ReplicaUsage& u : usages) {
    base::JsonObject row{
        {"replica", api::Spoken(u.id)}, {"cpuPercent", u.cpu_percent}, {"memoryBytes", u.memory}};
    if (u.steps_per_second) row["stepsPerSecond"] = *u.steps_per_second;
    if (u.step) row["step"] = *u.step;
    if (u.sharing) {
      row["shardsDoing"] = u.sharing->doing;
      row["shardsDone"] = u.sharing->done;
      row["recordsPerSecond"] = u.sharing->records_per_second;
    }
    row["straggler"] = u.straggler;
    rows.push_back(std::move(row));
  }
  return base::CompactJson(base::JsonObject{{"job", job}, {"replicas", std::move(rows)}}) + "\n";
}

std::string AsTable(const std::string& job, const std::vector<ReplicaUsage>& usages) {
  const bool shards =
      std::ranges::any_of(usages, [](const ReplicaUsage& u) { return u.sharing.has_value(); });
  std::string text = fmt::format("{:<12} {:>6} {:>8} {:>8} {:>8}{}\n", job, "CPU", "MEMORY", "STEP",
                                 "STEP/S", shards ? "    DOING     DONE RECORD/S" : "");
  for (const ReplicaUsage& u : usages) {
    text += fmt::format("{:<12} {:>5.0f}% {:>8} {:>8} {:>8}", api::Spoken(u.id), u.cpu_percent,
                        base::FormatBytes(u.memory), u.step ? std::to_string(*u.step) : "-",
                        u.steps_per_second ? fmt::format("{:.1f}", *u.steps_per_second) : "-");
    if (u.sharing) {
      text += fmt::format(" {:>8} {:>8} {:>8.1f}", u.sharing->doing, u.sharing->done,
                          u.sharing->records_per_second);
    } else if (shards) {
      text += fmt::format(" {:>8} {:>8} {:>8}", "-", "-", "-");
    }
    text += u.straggler ? "  straggler\n" : "\n";
  }
  return text;
}

base::Result<> Show(PlacedJob& job, bool once, bool json) {
  LogView view(false);
  std::unique_ptr<LogSource> logs;
  while (true) {
    const std::map<ReplicaId, Used> used = TRY(job.Measure());
    if (!logs) logs = TRY(job.OpenLogs({.replicas = TRY(job.WithLogs()), .follow = true}));
    for (const TimedChunk& chunk : TRY(logs->Read())) view.Feed(chunk.id, chunk.bytes, chunk.time);
    const base::Time now = io::Now();
    view.Take(now);
    const std::vector<ReplicaUsage> usages = Usages(used, view, now);
    io::WriteOut(1, json ? InJson(job.name(), usages)
                         : (once ? "" : "\x1b[H\x1b[J") + AsTable(job.name(), usages));
    if (once) return {};
  }
}

}  // namespace

int TopCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Fail(found.error());
  const bool once = args.Has("once") || args.json() || !io::TerminalOf(1).is_terminal;
  auto shown = Show(*found->job, once, args.json());
  if (shown) return 0;
  auto standing = found->job->Look();
  if (shown.error().kind() == base::ErrorKind::kUnavailable && standing && !standing->alive) {
    fmt::print(stderr, "trainyard: {} is not running: trainyard ps\n", found->job->name());
    return kExitLost;
  }
  return Fail(shown.error());
}

}  // namespace cli
