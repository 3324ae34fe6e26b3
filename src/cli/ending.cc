#include "cli/ending.h"

#include <ctime>

#include <fmt/core.h>

#include "base/duration.h"
#include "base/strings.h"
#include "cli/refuse.h"

namespace cli {
namespace {

// "14:03:22.123 CEST": in the time zone of whoever reads it.
std::string ClockTime(base::Time time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const time_t seconds = second.time_since_epoch().count();
  tm local{};
  localtime_r(&seconds, &local);
  char zone[32] = "";
  strftime(zone, sizeof zone, "%Z", &local);
  return fmt::format("{:02}:{:02}:{:02}.{:03} {}", local.tm_hour, local.tm_min, local.tm_sec,
                     (time - second) / std::chrono::milliseconds(1), zone);
}

std::string Took(const api::JobStatus& status) {
  if (!status.start_time || !status.completion_time) return "";
  return base::FormatDuration(*status.completion_time - *status.start_time);
}

}  // namespace

std::string StateWord(const api::JobStatus& status, bool alive) {
  if (api::Has(status, "Succeeded")) return "Succeeded";
  if (const api::Condition* failed = api::FindCondition(status, "Failed");
      failed && failed->status) {
    return failed->reason == "TFJobStopped" ? "Stopped" : "Failed";
  }
  if (api::Has(status, "Suspended")) return alive ? "Suspending" : "Suspended";
  if (!alive) return "Interrupted";
  for (const char* type : {"Restarting", "Running"}) {
    if (api::Has(status, type)) return type;
  }
  return "Starting";
}

int ExitStatus(const api::JobStatus& status) {
  if (status.verdict) return status.verdict->exit_status;
  if (api::Has(status, "Suspended")) return 65;
  return kExitLost;
}

std::string Ending(const api::Job& job, const Kept& kept, const io::Terminal& terminal) {
  const api::JobStatus& status = job.status;
  const std::string& name = job.metadata.name;
  const std::string dash = terminal.unicode ? " — " : " - ";
  const auto paint = [&](const char* code, const std::string& text) {
    return terminal.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  };
  const std::string took = Took(status).empty() ? "" : " after " + Took(status);
  const std::string result = status.verdict                  ? status.verdict->result
                             : api::Has(status, "Suspended") ? "suspended"
                                                             : "interrupted";
  const bool good = result == "succeeded";
  const std::string mark = terminal.unicode ? (good ? "✓ " : "✗ ") : "";
  std::string out = paint(good                 ? "1;32"
                          : result == "failed" ? "1;31"
                                               : "1;33",
                          mark + name + " " + result + took);
  if (status.verdict && !status.verdict->cause.empty()) {
    std::string_view cause = status.verdict->cause;
    if (cause.starts_with(result + " ")) cause.remove_prefix(result.size() + 1);  // not said twice
    out += dash + std::string(cause);
  }
  out += "\n";

  if (!good && result == "failed" && !status.incidents.empty()) {
    const api::Incident& last = status.incidents.back();
    out += fmt::format("  first   {}  {}  {}\n", ClockTime(last.when), api::Spoken(last.replica),
                       last.what);
    if (!last.consequences.empty()) {
      std::vector<std::string> names;
      for (api::ReplicaId id : last.consequences) names.push_back(api::Spoken(id));
      out += fmt::format("  then    {} (a consequence)\n", base::Join(names, ", "));
    }
  }
  if (!status.progress.metrics.empty()) {
    std::vector<std::string> metrics;
    for (const auto& [metric, value] : status.progress.metrics) {
      if (metrics.size() < 4) metrics.push_back(fmt::format("{} {:.4g}", metric, value));
    }
    out += "  metrics " + base::Join(metrics, terminal.unicode ? " · " : ", ") + "\n";
  }
  if (!kept.model.empty()) {
    out += "  model   " + kept.model + "\n";
  } else if (!kept.checkpoint.empty()) {
    out += "  kept    " + kept.checkpoint + "\n";
  }
  if (!kept.logs.empty()) out += "  logs    " + kept.logs + "\n";
  if (good) {
    if (!kept.next.empty()) out += "  next    " + kept.next + "\n";
  } else {
    const std::string advice = status.verdict ? status.verdict->advice : "trainyard resume " + name;
    if (!advice.empty())
      out += "  try     " + advice + (advice.starts_with("trainyard ") ? kept.again : "") + "\n";
  }
  return out;
}

}  // namespace cli
