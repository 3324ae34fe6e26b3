#include "cli/sweep_end.h"

#include <map>
#include <memory>

#include <fmt/core.h>
#include <poll.h>

#include "cli/place.h"
#include "cli/refuse.h"
#include "cli/sweep_plan.h"
#include "cli/sweep_store.h"
#include "io/clock.h"
#include "io/files.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;

constexpr base::Duration kEndsWithin = std::chrono::minutes(5);
constexpr int kBlinkMs = 50;
constexpr size_t kMostLines = 8;

// Those that there are, by number.
using Jobs = std::map<int, std::unique_ptr<PlacedJob>>;

// A sweep of ask and tell has none.
Result<Jobs> JobsOf(const SweepStore& store, Place* place) {
  Jobs jobs;
  if (!place) return jobs;
  const SweepPlan& plan = store.plan();
  std::map<std::string, int> numbers;
  for (const auto& [number, directory] : store.TrialDirs()) numbers[store.JobName(number)] = number;
  for (const Listing& listing : TRY(place->List(plan.job_space))) {
    const auto trial = numbers.find(listing.name);
    if (trial != numbers.end())
      jobs[trial->second] = TRY(place->Find(plan.job_space, listing.name));
  }
  return jobs;
}

std::vector<PlacedJob*> Living(const Jobs& jobs) {
  std::vector<PlacedJob*> out;
  for (const auto& [number, job] : jobs) {
    if (auto standing = job->Look(); standing && standing->alive) out.push_back(job.get());
  }
  return out;
}

Result<> StopAll(const std::vector<PlacedJob*>& jobs) {
  for (PlacedJob* job : jobs) TRY_AS("stop " + job->name(), job->Stop(UserName()));
  for (PlacedJob* job : jobs) TRY_AS("stop " + job->name(), job->WaitUntilOver(std::nullopt));
  return {};
}

// Whoever drives it is asked to end, until the lock is ours.
Result<> TakeFromDriver(SweepStore& store) {
  const base::Time until = io::Now() + kEndsWithin;
  while (true) {
    auto taken = store.Take();
    if (taken || taken.error().kind() != ErrorKind::kTaken) return taken;
    if (io::Now() > until)
      return std::unexpected(
          Error(ErrorKind::kUnavailable, store.plan().name + " was asked to end and does not"));
    if (!store.IsAskedToStop()) TRY(store.AskToStop(UserName()));
    poll(nullptr, 0, kBlinkMs);
  }
}

Result<std::unique_ptr<Place>> PlaceOfSweep(const Args& args, const SweepPlan& plan) {
  if (plan.directory.empty()) return nullptr;  // by ask and tell
  return PlaceOf(TRY(WhereItWasBegun(args, plan)));
}

Result<> Stop(const Args& args, SweepStore& store) {
  const SweepPlan& plan = store.plan();
  const std::unique_ptr<Place> place = TRY(PlaceOfSweep(args, plan));
  const bool driven = store.IsAlive();
  if (!driven && Living(TRY(JobsOf(store, place.get()))).empty())
    return base::Invalid(plan.name + " is not running");
  TRY(TakeFromDriver(store));
  return StopAll(Living(TRY(JobsOf(store, place.get()))));
}

// Of the jobs of the trials, those of which only the output is left.
Result<> AddRemains(const SweepStore& store, Place& place, Jobs& jobs) {
  for (const auto& [number, directory] : store.TrialDirs()) {
    if (jobs.contains(number)) continue;
    auto remains = place.FindRemains(store.plan().job_space, store.JobName(number));
    if (remains) {
      jobs[number] = std::move(*remains);
    } else if (remains.error().kind() != ErrorKind::kNotFound) {
      return std::unexpected(remains.error());
    }
  }
  return {};
}

// Says what stays. A job goes before its trial's directory, and all of them before the records:
// what fails can be tried again.
Result<std::vector<std::string>> Remove(SweepStore& store, const Jobs& jobs, bool with_output) {
  std::vector<std::string> kept;
  for (const auto& [number, directory] : store.TrialDirs()) {
    std::vector<std::string> of_job;
    if (const auto job = jobs.find(number); job != jobs.end())
      of_job = TRY_AS("delete " + job->second->name(), job->second->Delete(with_output));
    const auto of_trial = TRY(store.RemoveTrial(directory, with_output, !of_job.empty()));
    for (const auto& paths : {of_job, of_trial})
      kept.insert(kept.end(), paths.begin(), paths.end());
  }
  TRY(store.RemoveRecords());
  return kept;
}

Result<std::vector<std::string>> Delete(const Args& args, SweepStore& store) {
  const SweepPlan& plan = store.plan();
  const bool with_output = args.Has("with-output");
  const std::unique_ptr<Place> place = TRY(PlaceOfSweep(args, plan));
  if (!args.Has("force")) {
    const auto living = Living(TRY(JobsOf(store, place.get())));
    if (store.IsAlive() || !living.empty())
      return base::Invalid(fmt::format("{} is running: trainyard sweep stop {}, or use --force",
                                       store.IsAlive() ? plan.name : living.front()->name(),
                                       plan.name));
  }
  TRY(TakeFromDriver(store));
  Jobs jobs = TRY(JobsOf(store, place.get()));
  TRY(StopAll(Living(jobs)));
  if (place && with_output) TRY(AddRemains(store, *place, jobs));
  return Remove(store, jobs, with_output);
}

int Say(const Args& args, const SweepStore& store, const std::string& words) {
  if (args.json()) {
    fmt::print("{}\n",
               base::CompactJson(base::JsonObject{{"sweep", store.plan().name}, {"done", words}}));
  } else {
    fmt::print("{} {}\n", store.plan().name, words);
  }
  return 0;
}

}  // namespace

int StopSweep(const Args& args) {
  auto store = SweepStore::Open(args.name_space(), args.operand(1));
  if (!store) return Refuse(store.error());
  if (auto done = Stop(args, *store); !done) return Fail(done.error());
  return Say(args, *store, "stopped");
}

int DeleteSweep(const Args& args) {
  auto store = SweepStore::Open(args.name_space(), args.operand(1));
  if (!store && args.Has("with-output")) {
    auto remains = SweepStore::OpenRemains(args.name_space(), args.operand(1));
    if (remains) store = std::move(remains);
  }
  if (!store) return Refuse(store.error());
  auto kept = Delete(args, *store);
  if (!kept) return Fail(kept.error());
  Say(args, *store, "deleted");
  if (args.json()) return 0;
  for (size_t i = 0; i < kept->size() && i < kMostLines; ++i)
    fmt::print("  kept    {}\n", (*kept)[i]);
  if (kept->size() > kMostLines) fmt::print("  kept    and {} more\n", kept->size() - kMostLines);
  return 0;
}

}  // namespace cli
