// `scale`, `suspend`, `stop`, `delete`, `wait`: changes to a job, and waiting for its end.
#include <algorithm>

#include <fmt/core.h>

#include "base/duration.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/ending.h"
#include "cli/place.h"
#include "cli/refuse.h"
#include "cli/sweep_store.h"
#include "io/clock.h"
#include "io/terminal.h"

namespace cli {
namespace {

using base::ErrorKind;
using base::JsonObject;
using base::Result;

int Say(const Args& args, const PlacedJob& job, const std::string& words) {
  if (args.json()) {
    fmt::print("{}\n", base::CompactJson(JsonObject{{"job", job.name()}, {"done", words}}));
  } else {
    fmt::print("{} {}\n", job.name(), words);
  }
  return 0;
}

// What became of a job that was to be suspended or stopped: it may have finished just before.
int SayOver(const Args& args, PlacedJob& job, const std::string& words) {
  const auto standing = job.Look();
  const bool succeeded = standing && api::Has(standing->job.status, "Succeeded");
  return Say(args, job, succeeded ? "succeeded before it could be " + words : words);
}

// Whether the job would still have somebody to train with this many replicas of a role.
Result<> CheckScale(api::Job job, api::Role role, int32_t count) {
  if (!job.spec.replicas.contains(role)) {
    std::vector<std::string> roles;
    for (const auto& [there, spec] : job.spec.replicas) roles.emplace_back(api::LowerName(there));
    return base::Invalid(fmt::format("{} has no {}, only {}", job.metadata.name,
                                     api::LowerName(role), base::Join(roles, ", ")));
  }
  job.spec.replicas[role].replicas = count;
  for (api::Role driver : {api::Role::kChief, api::Role::kMaster, api::Role::kWorker}) {
    if (api::ReplicasOf(job.spec, driver) > 0) return {};
  }
  return base::Invalid(
      fmt::format("{}={}: no replica would be left that trains: suspend the job instead",
                  api::LowerName(role), count));
}

// How it stands, of a job that has not ended.
Result<Standing> LookAtLive(PlacedJob& job) {
  Standing standing = TRY(job.Look());
  if (api::IsTerminal(standing.job.status)) return base::Invalid(job.name() + " has ended already");
  return standing;
}

Result<> StopAndWait(PlacedJob& job) {
  TRY(job.Stop(UserName()));
  TRY(job.WaitUntilOver(std::nullopt));
  return {};
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
  auto place = PlaceOf(args);
  if (!place) return Refuse(place.error());
  auto job = FindJob(**place, args, args.operands().size() == 2 ? args.operand(0) : "");
  if (!job) return Fail(job.error());
  const auto done = [&]() -> Result<> {
    const Standing standing = TRY(LookAtLive(**job));
    TRY(CheckScale(standing.job, *role, static_cast<int32_t>(*count)));
    return (*job)->Scale(*role, static_cast<int32_t>(*count));
  }();
  if (!done) return Fail(done.error());
  return Say(args, **job, fmt::format("scaled to {} {}", *count, api::LowerName(*role)));
}

int SuspendCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Fail(found.error());
  const auto done = [&]() -> Result<> {
    TRY(LookAtLive(*found->job));
    TRY(found->job->Suspend());
    TRY(found->job->WaitUntilOver(std::nullopt));
    return {};
  }();
  if (!done) return Fail(done.error());
  return SayOver(args, *found->job, "suspended");
}

int StopCommand(const Args& args) {
  auto found = FindJob(args);
  if (!found) return Fail(found.error());
  auto standing = found->job->Look();
  if (!standing) return Fail(standing.error());
  if (api::IsTerminal(standing->job.status) && !standing->alive)
    return Refuse(found->job->name() + " has ended already");
  if (auto done = StopAndWait(*found->job); !done) return Fail(done.error());
  return SayOver(args, *found->job, "stopped");
}

int DeleteCommand(const Args& args) {
  auto place = PlaceOf(args);
  if (!place) return Refuse(place.error());
  auto job = FindJob(**place, args, args.operand(0));
  const bool remains =
      !job && job.error().kind() == ErrorKind::kNotFound && args.Has("with-output");
  if (remains) {
    auto found = (*place)->FindRemains((*place)->NamespaceOf(args), args.operand(0));
    if (found) job = std::move(found);
  }
  if (!job && std::ranges::count(SweepStore::List(args.name_space()), args.operand(0)))
    return Refuse(
        fmt::format("{} is a sweep: trainyard sweep delete {}", args.operand(0), args.operand(0)));
  if (!job) return Fail(job.error());
  auto standing = (*job)->Look();
  if (standing && standing->alive) {
    if (!args.Has("force"))
      return Refuse((*job)->name() + " is running: stop it first, or use --force");
    if (!(*job)->DeleteEndsIt()) {
      if (auto done = StopAndWait(**job); !done) return Fail(done.error());
    }
  }
  auto kept = (*job)->Delete(args.Has("with-output"));
  if (!kept) return Fail(kept.error());
  Say(args, **job, "deleted");
  for (const std::string& path : *kept) {
    if (!args.json()) fmt::print("  kept    {}\n", path);
  }
  return 0;
}

int WaitCommand(const Args& args) {
  std::optional<base::Time> until;
  if (args.Has("timeout")) {
    auto timeout = base::ParseDuration(args.Get("timeout"));
    if (!timeout) return Refuse("--timeout: " + timeout.error().text());
    until = io::Now() + *timeout;
  }
  auto found = FindJob(args);
  if (!found) return Fail(found.error());
  auto over = found->job->WaitUntilOver(until);
  if (!over) return Fail(over.error());
  if (!*over) {
    fmt::print(stderr, "trainyard: {} has not ended within {}\n", found->job->name(),
               args.Get("timeout"));
    return 1;
  }
  auto standing = found->job->Look();
  if (!standing) return Fail(standing.error());
  const api::Job& job = standing->job;
  if (!args.json()) {
    io::WriteOut(1, Ending(job, found->job->WhatIsKept(job), io::TerminalOf(1)));
  } else {
    fmt::print("{}\n", base::CompactJson(JsonObject{{"job", found->job->name()},
                                                    {"status", api::EncodeStatus(job.status)}}));
  }
  return ExitStatus(job.status);
}

}  // namespace cli
