// `ps`, `get`, `events`, `why`: what there is and how it stands. On this machine they read files
// and need no supervisor.
#include <algorithm>

#include <fmt/core.h>

#include "base/duration.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "cli/commands.h"
#include "cli/ending.h"
#include "cli/live_block.h"
#include "cli/place.h"
#include "cli/refuse.h"
#include "io/clock.h"
#include "io/terminal.h"

namespace cli {
namespace {

// The state of a job that its queue holds back.
constexpr const char* kQueued = "Queued";

struct Row {
  std::string space, name, state, replicas, progress, restarts, age, note;
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

Row RowOf(const Listing& job, base::Time now) {
  const api::JobStatus& status = job.status;
  Row row{.space = job.name_space,
          .name = job.name,
          .state = job.queue.empty() ? StateWord(status, job.alive) : kQueued,
          .replicas = Ready(status)};
  if (status.progress.percent) row.progress = fmt::format("{:.0f}%", *status.progress.percent);
  row.restarts = std::to_string(status.restarts + status.disruptions);
  if (status.start_time) row.age = base::FormatShortDuration(now - *status.start_time);
  // A failure is told by its cause, not by the word alone.
  if (status.verdict && status.verdict->result != "succeeded") row.note = status.verdict->cause;
  if (row.state == "Interrupted") row.note = "its supervisor is gone: trainyard resume " + job.name;
  if (row.note.empty()) row.note = job.waits_for;
  if (row.note.empty()) {
    if (status.shards && status.shards->records_total > 0) {
      const int64_t done = status.shards->records_total - status.shards->records_left;
      row.note = fmt::format("records {}/{}  ", done, status.shards->records_total);
    }
    for (const auto& [name, value] : status.progress.metrics) {
      if (name == "loss" || name == "accuracy") row.note += fmt::format("{} {:.4g}  ", name, value);
    }
  }
  return row;
}

}  // namespace

int PsCommand(const Args& args) {
  auto place = PlaceOf(args);
  if (!place) return Refuse(place.error());
  const bool all = args.Has("all-namespaces");
  auto jobs = (*place)->List(all ? "" : (*place)->NamespaceOf(args));
  if (!jobs) return Fail(jobs.error());
  if (args.json()) {
    base::JsonArray out;
    for (const Listing& job : *jobs) {
      out.push_back(base::JsonObject{{"namespace", job.name_space},
                                     {"name", job.name},
                                     {"state", RowOf(job, io::Now()).state},
                                     {"waitsFor", job.waits_for},
                                     {"status", api::EncodeStatus(job.status)}});
    }
    fmt::print("{}", base::IndentedJson(out));
    return 0;
  }
  if (jobs->empty()) {
    fmt::print("no jobs: trainyard run SCRIPT starts one\n");
    return 0;
  }
  std::vector<Row> rows = {
      {"NAMESPACE", "NAME", "STATE", "REPLICAS", "PROGRESS", "RESTARTS", "AGE", "NOTE"}};
  const base::Time now = io::Now();
  for (const Listing& job : *jobs) rows.push_back(RowOf(job, now));
  const auto width = [&](std::string Row::* column) {
    return std::ranges::max(rows, {}, [&](const Row& row) { return (row.*column).size(); }).*column;
  };
  const size_t space = width(&Row::space).size(), name = width(&Row::name).size();
  const io::Terminal terminal = io::TerminalOf(1);
  std::string text;
  for (const Row& row : rows) {
    std::string line = all ? fmt::format("{:<{}}  ", row.space, space) : "";
    line += fmt::format("{:<{}}  {:<11}  {:>8}  {:>8}  {:>8}  {:>4}  {}", row.name, name, row.state,
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
  if (!found) return Fail(found.error());
  auto standing = found->job->Look();
  if (!standing) return Fail(standing.error());
  base::Json json = api::EncodeJob(standing->job);
  json.get_object()["status"] = api::EncodeStatus(standing->job.status);
  io::WriteOut(1, *format == "json" ? base::IndentedJson(json) : base::WriteYaml(json));
  return 0;
}

int EventsCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Fail(found.error());
  auto events = found->job->Events();
  if (!events) return Fail(events.error());
  std::string text;
  for (const base::Json& event : *events) {
    text +=
        args.json()
            ? base::CompactJson(event) + "\n"
            : fmt::format("{}Z  {:<7}  {:<18}  {}\n", base::StringOr(event, "time").substr(0, 19),
                          base::StringOr(event, "type"), base::StringOr(event, "reason"),
                          base::StringOr(event, "message"));
  }
  io::WriteOut(1, text);
  return 0;
}

namespace {

// What happened to a job on the way, an entry each.
std::string History(const api::JobStatus& status) {
  std::string text;
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
  return text;
}

std::string StateOf(const Standing& standing) {
  return standing.queue.empty() ? StateWord(standing.job.status, standing.alive) : kQueued;
}

int WhyInJson(const PlacedJob& job, const Standing& standing,
              const std::vector<Trouble>& troubles) {
  base::JsonObject status = api::EncodeStatus(standing.job.status).get_object();
  base::JsonObject answer{{"job", job.name()},
                          {"state", StateOf(standing)}};
  for (const char* key : {"verdict", "incidents", "restarts", "disruptions"}) {
    if (status.contains(key)) answer[key] = status[key];
  }
  base::JsonArray list;
  for (const Trouble& trouble : troubles)
    list.push_back(base::JsonObject{{"what", trouble.what}, {"fix", trouble.fix}});
  if (!list.empty()) answer["troubles"] = std::move(list);
  fmt::print("{}", base::IndentedJson(answer));
  return 0;
}

}  // namespace

int WhyCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Fail(found.error());
  auto standing = found->job->Look();
  if (!standing) return Fail(standing.error());
  auto troubles = found->job->Troubles(*standing);
  if (!troubles) return Fail(troubles.error());
  if (args.json()) return WhyInJson(*found->job, *standing, *troubles);
  const api::JobStatus& status = standing->job.status;
  const std::string state = StateOf(*standing);
  std::string text;
  if (status.verdict || state == "Suspended") {
    text = Ending(standing->job, found->job->WhatIsKept(standing->job), io::TerminalOf(1));
  } else if (state == "Interrupted") {
    text = found->job->name() + " was interrupted";
  } else {
    text = fmt::format("{} is {}\n", found->job->name(), base::Lower(state));
  }
  for (const Trouble& trouble : *troubles) {
    text += state == "Interrupted" ? ": " + trouble.what + "\n" : "  " + trouble.what + "\n";
    if (!trouble.fix.empty()) text += "  try     " + trouble.fix + "\n";
  }
  io::WriteOut(1, text + History(status));
  return 0;
}

}  // namespace cli
