// `ps`, `get`, `events`, `why`: what there is and how it stands. They read files and need no
// supervisor.
#include <algorithm>

#include <fmt/core.h>

#include "base/duration.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "cli/commands.h"
#include "cli/ending.h"
#include "cli/jobs.h"
#include "cli/live_block.h"
#include "cli/refuse.h"
#include "io/clock.h"
#include "io/terminal.h"

namespace cli {
namespace {

using backend::local::Listed;

struct Row {
  std::string name, state, replicas, progress, restarts, age, note;
};

// Replicas that run (or have done their work) of those wanted.
std::string Ready(const api::JobStatus& status) {
  int32_t ready = 0, wanted = 0;
  for (const auto& [role, count] : status.shape) wanted += count;
  for (const auto& [role, counts] : status.replica_statuses) {
    if (status.shape.contains(role)) ready += counts.active + counts.succeeded;
  }
  return fmt::format("{}/{}", ready, wanted);
}

Row RowOf(const Listed& job, const api::JobStatus& status, base::Time now) {
  const bool alive = !api::IsTerminal(status) && job.dir.IsAlive();
  Row row{.name = job.name, .state = StateWord(status, alive), .replicas = Ready(status)};
  if (status.progress.percent) row.progress = fmt::format("{:.0f}%", *status.progress.percent);
  row.restarts = std::to_string(status.restarts + status.disruptions);
  if (status.start_time) row.age = base::FormatShortDuration(now - *status.start_time);
  // A failure is told by its cause, not by the word alone.
  if (status.verdict && status.verdict->result != "succeeded") row.note = status.verdict->cause;
  if (row.state == "Interrupted") row.note = "its supervisor is gone: trainyard resume " + job.name;
  if (row.note.empty()) {
    for (const auto& [name, value] : status.progress.metrics) {
      if (name == "loss" || name == "accuracy") row.note += fmt::format("{} {:.4g}  ", name, value);
    }
  }
  return row;
}

}  // namespace

int PsCommand(const Args& args) {
  const std::string space = args.Has("all-namespaces") ? "" : args.name_space();
  std::vector<std::pair<Listed, api::JobStatus>> jobs;
  for (Listed& job : backend::local::ListJobs(space)) {
    api::JobStatus status = job.dir.LoadStatus();
    if (!DropIfExpired(job, status)) jobs.emplace_back(std::move(job), std::move(status));
  }
  if (args.json()) {
    base::JsonArray out;
    for (const auto& [job, status] : jobs) {
      out.push_back(base::JsonObject{{"namespace", job.name_space},
                                     {"name", job.name},
                                     {"state", StateWord(status, job.dir.IsAlive())},
                                     {"status", api::EncodeStatus(status)}});
    }
    fmt::print("{}", base::IndentedJson(out));
    return 0;
  }
  if (jobs.empty()) {
    fmt::print("no jobs: trainyard run SCRIPT starts one\n");
    return 0;
  }
  std::vector<Row> rows = {{"NAME", "STATE", "REPLICAS", "PROGRESS", "RESTARTS", "AGE", "NOTE"}};
  const base::Time now = io::Now();
  for (const auto& [job, status] : jobs) rows.push_back(RowOf(job, status, now));
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  const io::Terminal terminal = io::TerminalOf(1);
  std::string text;
  for (const Row& row : rows) {
    std::string line =
        fmt::format("{:<{}}  {:<11}  {:>8}  {:>8}  {:>8}  {:>4}  {}", row.name, width, row.state,
                    row.replicas, row.progress, row.restarts, row.age, row.note);
    if (terminal.is_terminal) line = Elide(line, terminal.width);
    text += std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
  }
  io::WriteOut(1, text);
  return 0;
}

int GetCommand(const Args& args) {
  auto format = args.OneOf("output", args.json() ? "json" : "yaml", {"yaml", "json"});
  if (!format) return Refuse(format.error());
  auto found = FindJob(args);
  if (!found) return Refuse(found.error());
  auto job = found->dir.LoadJob();
  if (!job) return Refuse(job.error());
  base::Json json = api::EncodeJob(*job);
  json.get_object()["status"] = api::EncodeStatus(job->status);
  io::WriteOut(1, *format == "json" ? base::IndentedJson(json) : base::WriteYaml(json));
  return 0;
}

int EventsCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Refuse(found.error());
  auto text = io::ReadFile(found->dir.File("events.jsonl"));
  if (!text) return 0;  // nothing has happened yet
  if (args.json()) {
    io::WriteOut(1, *text);
    return 0;
  }
  for (std::string_view line : base::Split(*text, '\n')) {
    auto event = base::ParseJson(line);
    if (!event) continue;  // the last one, cut by a crash
    fmt::print("{}  {:<7}  {:<18}  {}\n", base::StringOr(*event, "time").substr(0, 19),
               base::StringOr(*event, "type"), base::StringOr(*event, "reason"),
               base::StringOr(*event, "message"));
  }
  return 0;
}

int WhyCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Refuse(found.error());
  auto job = found->dir.LoadJob();
  if (!job) return Refuse(job.error());
  const api::JobStatus& status = job->status;
  const bool alive = found->dir.IsAlive();
  const std::string state = StateWord(status, alive);
  if (args.json()) {
    base::JsonObject out = api::EncodeStatus(status).get_object();
    base::JsonObject answer{{"job", found->name}, {"state", state}};
    for (const char* key : {"verdict", "incidents", "restarts", "disruptions"}) {
      if (out.contains(key)) answer[key] = out[key];
    }
    fmt::print("{}", base::IndentedJson(answer));
    return 0;
  }
  auto run = found->dir.LoadRun();
  const io::Terminal terminal = io::TerminalOf(1);
  std::string text;
  if (status.verdict || state == "Suspended") {
    text = Ending(*job, found->dir, run ? run->output : "", terminal);
  } else if (state == "Interrupted") {
    text = fmt::format(
        "{} was interrupted: its supervisor is gone, and its replicas with it\n  try     trainyard "
        "resume {}\n",
        found->name, found->name);
  } else {
    text = fmt::format("{} is {}\n", found->name, base::Lower(state));
  }
  for (const api::Incident& incident : status.incidents) {
    text += fmt::format("  {}  attempt {}  {} {}{}\n", base::FormatTime(incident.when),
                        incident.attempt, api::Spoken(incident.replica), incident.what,
                        incident.disruption ? " (not counted as a failure)" : "");
    if (!incident.line.empty()) text += "      " + incident.line + "\n";
    if (!incident.consequences.empty()) {
      std::vector<std::string> names;
      for (api::ReplicaId id : incident.consequences) names.push_back(api::Spoken(id));
      text += "      followed by " + base::Join(names, ", ") + " (a consequence)\n";
    }
  }
  io::WriteOut(1, text);
  return 0;
}

}  // namespace cli
