// `scale`, `suspend`, `stop`, `delete`, `wait`: changes to a job, through its supervisor where it
// has one, by taking its lock where it has none.
#include <fmt/core.h>
#include <poll.h>

#include "api/decode.h"
#include "base/duration.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/ending.h"
#include "cli/jobs.h"
#include "cli/refuse.h"
#include "core/reconcile.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/terminal.h"

namespace cli {
namespace {

using base::ErrorKind;
using base::JsonObject;
using base::Result;

constexpr int kExitLost = 69;

// Asks the supervisor; without one, takes the job's lock and does it here.
Result<> Change(const FoundJob& job, JsonObject request,
                Result<> (*alone)(const FoundJob&, const JsonObject&)) {
  auto answer = Ask(job, request);
  if (answer) return {};
  if (answer.error().kind() != ErrorKind::kUnavailable) return std::unexpected(answer.error());
  auto lock = io::Lock::TryTake(job.dir.File("lock"));
  if (!lock) {
    return std::unexpected(
        base::Error(ErrorKind::kUnavailable,
                    fmt::format("the supervisor of {} does not answer: try again", job.name)));
  }
  return alone(job, request);
}

void Say(const Args& args, const FoundJob& job, const std::string& words) {
  if (args.json()) {
    fmt::print("{}\n", base::CompactJson(JsonObject{{"job", job.name}, {"done", words}}));
  } else {
    fmt::print("{} {}\n", job.name, words);
  }
}

int Failed(const base::Error& error) {
  Refuse(error);
  return error.kind() == ErrorKind::kUnavailable ? kExitLost : kRefused;
}

Result<> ScaleAlone(const FoundJob& found, const JsonObject& request) {
  api::Job job = TRY(found.dir.LoadJob());
  const auto role = api::RoleFromName(base::StringOr(request, "role"));
  if (!role || !job.spec.replicas.contains(*role)) return base::Invalid("the job has no such role");
  job.spec.replicas[*role].replicas = static_cast<int32_t>(base::IntOr(request, "replicas"));
  if (auto errors = api::Validate(job); !errors.empty()) {
    return base::Invalid(errors.front().path + ": " + errors.front().detail);
  }
  return found.dir.SaveJob(job);
}

Result<> SuspendAlone(const FoundJob& found, const JsonObject&) {
  api::Job job = TRY(found.dir.LoadJob());
  if (api::IsTerminal(job.status))
    return base::Invalid(fmt::format("{} has ended already", found.name));
  job.spec.run_policy.suspend = true;
  TRY(found.dir.SaveJob(job));
  // Nothing of it lives, so the status is all there is to change.
  return found.dir.SaveStatus(core::Reconcile(job, {}, {}, io::Now()).status);
}

Result<> StopAlone(const FoundJob& found, const JsonObject& request) {
  const api::Job job = TRY(found.dir.LoadJob());
  if (api::IsTerminal(job.status))
    return base::Invalid(fmt::format("{} has ended already", found.name));
  return found.dir.SaveStatus(core::Stopped(job, base::StringOr(request, "by"), io::Now()));
}

// Until nobody holds the job's lock: all of its processes are gone.
bool WaitUntilGone(const FoundJob& job, std::optional<base::Time> until) {
  while (job.dir.IsAlive()) {
    if (until && io::Now() >= *until) return false;
    poll(nullptr, 0, 50);
  }
  return true;
}

// A job of which only the output is left.
Result<FoundJob> DeletedEarlier(const Args& args, const base::Error& not_found) {
  const std::string name = args.operand(0);
  const backend::local::JobDir dir = backend::local::Locate(args.name_space(), name);
  const bool plain = !name.empty() && name.find('/') == std::string::npos && name[0] != '.';
  if (!plain || !io::IsDirectory(dir.path())) return std::unexpected(not_found);
  return FoundJob{args.name_space(), name, dir};
}

// Whether the job would still have somebody to train with this many replicas of a role.
Result<> CheckScale(const FoundJob& found, api::Role role, int64_t count) {
  api::Job job = TRY(found.dir.LoadJob());
  if (!job.spec.replicas.contains(role)) {
    std::vector<std::string> roles;
    for (const auto& [there, spec] : job.spec.replicas) roles.emplace_back(api::LowerName(there));
    return base::Invalid(fmt::format("{} has no {}, only {}", found.name, api::LowerName(role),
                                     base::Join(roles, ", ")));
  }
  job.spec.replicas[role].replicas = static_cast<int32_t>(count);
  for (api::Role driver : {api::Role::kChief, api::Role::kMaster, api::Role::kWorker}) {
    if (api::ReplicasOf(job.spec, driver) > 0) return {};
  }
  return base::Invalid(
      fmt::format("{}={}: no replica would be left that trains: suspend the job instead",
                  api::LowerName(role), count));
}

}  // namespace

int ScaleCommand(const Args& args) {
  if (args.operands().empty()) return Refuse("which role? usage: trainyard scale [JOB] worker=3");
  const std::string change = args.operands().back();
  const size_t equals = change.find('=');
  const auto role = api::RoleFromName(change.substr(0, equals));
  const auto count =
      equals == std::string::npos ? std::nullopt : base::ParseInt(change.substr(equals + 1));
  if (!role || !count || *count < 0 || *count > 1000) {
    return Refuse(
        fmt::format("'{}': must be ROLE=N, a role (chief, master, worker, ps, evaluator) and a "
                    "number from 0 to 1000",
                    change));
  }
  auto found = FindJob(args.name_space(), args.operands().size() == 2 ? args.operand(0) : "");
  if (!found) return Refuse(found.error());
  if (api::IsTerminal(found->dir.LoadStatus())) return Refuse(found->name + " has ended already");
  if (auto good = CheckScale(*found, *role, *count); !good) return Refuse(good.error());
  auto done = Change(*found, {{"verb", "scale"}, {"role", api::Name(*role)}, {"replicas", *count}},
                     ScaleAlone);
  if (!done) return Failed(done.error());
  Say(args, *found, fmt::format("scaled to {} {}", *count, api::LowerName(*role)));
  return 0;
}

int SuspendCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Refuse(found.error());
  if (api::IsTerminal(found->dir.LoadStatus())) return Refuse(found->name + " has ended already");
  auto done = Change(*found, {{"verb", "suspend"}}, SuspendAlone);
  if (!done) return Failed(done.error());
  WaitUntilGone(*found, std::nullopt);
  Say(args, *found, "suspended");
  return 0;
}

int StopCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Refuse(found.error());
  if (api::IsTerminal(found->dir.LoadStatus()) && !found->dir.IsAlive()) {
    return Refuse(found->name + " has ended already");
  }
  auto done = Change(*found, {{"verb", "stop"}, {"by", UserName()}}, StopAlone);
  if (!done) return Failed(done.error());
  WaitUntilGone(*found, std::nullopt);
  Say(args, *found, "stopped");
  return 0;
}

int DeleteCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found && args.Has("with-output")) found = DeletedEarlier(args, found.error());
  if (!found) return Refuse(found.error());
  if (found->dir.IsAlive()) {
    if (!args.Has("force"))
      return Refuse(found->name + " is running: stop it first, or use --force");
    auto done = Change(*found, {{"verb", "stop"}, {"by", UserName()}}, StopAlone);
    if (!done) return Failed(done.error());
    WaitUntilGone(*found, std::nullopt);
  }
  auto kept = RemoveRecords(*found, args.Has("with-output"));
  if (!kept) return Refuse(kept.error());
  Say(args, *found, "deleted");
  for (const std::string& path : *kept) {
    if (!args.json()) fmt::print("  kept    {}\n", path);
  }
  return 0;
}

int WaitCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Refuse(found.error());
  std::optional<base::Time> until;
  if (args.Has("timeout")) {
    auto timeout = base::ParseDuration(args.Get("timeout"));
    if (!timeout) return Refuse("--timeout: " + timeout.error().text());
    until = io::Now() + *timeout;
  }
  if (!WaitUntilGone(*found, until)) {
    fmt::print(stderr, "trainyard: {} has not ended within {}\n", found->name, args.Get("timeout"));
    return 1;
  }
  auto job = found->dir.LoadJob();
  if (!job) return Refuse(job.error());
  auto run = found->dir.LoadRun();
  if (!args.json()) {
    io::WriteOut(1, Ending(*job, found->dir, run ? run->output : "", io::TerminalOf(1)));
  } else {
    fmt::print("{}\n", base::CompactJson(JsonObject{{"job", found->name},
                                                    {"status", api::EncodeStatus(job->status)}}));
  }
  return ExitStatus(job->status);
}

}  // namespace cli
