#include "cli/local_place.h"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>
#include <poll.h>

#include "api/decode.h"
#include "base/strings.h"
#include "cli/ledger_audit.h"
#include "cli/local_jobs.h"
#include "cli/usage.h"
#include "core/reconcile.h"
#include "io/clock.h"
#include "io/files.h"

namespace cli {
namespace {

using api::ReplicaId;
using backend::local::Listed;
using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonObject;
using base::Result;

constexpr int kFollowMs = 100;
constexpr int kMeasureMs = 1000;

// The newest TensorFlow checkpoint below a directory, by the name it has there; empty when there is
// none.
std::string NewestCheckpoint(const std::string& directory) {
  std::string newest;
  std::filesystem::file_time_type when;
  std::error_code error;
  for (auto it = std::filesystem::recursive_directory_iterator(directory, error);
       !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    if (it->path().extension() != ".index") continue;
    std::error_code ignored;
    const auto time = it->last_write_time(ignored);
    if (!ignored && (newest.empty() || time > when)) {
      newest = it->path().stem().string();
      when = time;
    }
  }
  return newest;
}

class FileLogs : public LogSource {
 public:
  FileLogs(const backend::local::JobDir& dir, const LogWish& wish)
      : dir_(dir), follow_(wish.follow) {
    for (ReplicaId id : wish.replicas) {
      auto [it, made] = tails_.try_emplace(id, dir_.LogFile(id));
      const int64_t since = wish.since ? OffsetAt(dir_.LogFile(id), *wish.since) : 0;
      const int64_t last = wish.tail ? OffsetOfLastLines(dir_.LogFile(id), *wish.tail) : 0;
      it->second.SkipTo(std::max(since, last));
      skipped_ |= last > since;
    }
  }

  Result<std::vector<TimedChunk>> Read() override {
    const bool alive = dir_.IsAlive();  // before the last look
    std::vector<TimedChunk> out = ReadInOrder(tails_, dir_);
    ended_ = !follow_ || (!alive && out.empty());
    if (out.empty() && !ended_) poll(nullptr, 0, kFollowMs);
    return out;
  }

  bool ended() const override { return ended_; }
  bool skipped() const override { return skipped_; }

 private:
  backend::local::JobDir dir_;
  const bool follow_;
  bool skipped_ = false;
  std::map<ReplicaId, LogTail> tails_;
  bool ended_ = false;
};

// A job of this machine: changes go through its supervisor where it has one, and are made by taking
// its lock where it has none.
class JobHere : public PlacedJob {
 public:
  explicit JobHere(LocalJob job) : PlacedJob(job.name_space, job.name), job_(std::move(job)) {}

  Result<Standing> Look() override { return Standing{TRY(job_.dir.LoadJob()), job_.dir.IsAlive()}; }

  Result<std::vector<Json>> Events() override {
    std::vector<Json> out;
    auto text = io::ReadFile(job_.dir.File("events.jsonl"));
    if (!text) return out;  // nothing has happened yet
    for (std::string_view line : base::Split(*text, '\n')) {
      if (auto event = base::ParseJson(line))
        out.push_back(*std::move(event));  // else cut by a crash
    }
    return out;
  }

  Result<std::vector<Trouble>> Troubles(const Standing& standing) override {
    if (standing.alive || api::IsTerminal(standing.job.status) ||
        api::Has(standing.job.status, "Suspended")) {
      return std::vector<Trouble>();
    }
    return std::vector<Trouble>{
        {"its supervisor is gone, and its replicas with it", "trainyard resume " + name()}};
  }

  Kept WhatIsKept(const api::Job&) override {
    auto run = job_.dir.LoadRun();
    return KeptLocally(job_.dir, run ? run->output : "", name());
  }

  Result<std::vector<ReplicaId>> WithLogs() override {
    std::vector<ReplicaId> out;
    for (const std::string& file : io::ListDir(job_.dir.File("logs"))) {
      if (!file.ends_with(".log")) continue;
      if (auto id = api::ReplicaIdFrom(file.substr(0, file.size() - 4))) out.push_back(*id);
    }
    return out;
  }

  Result<std::unique_ptr<LogSource>> OpenLogs(const LogWish& wish) override {
    return std::make_unique<FileLogs>(job_.dir, wish);
  }

  Result<std::map<ReplicaId, Used>> Measure() override {
    // The supervisor knows which guard runs which replica.
    const Json answer = TRY(Ask(job_, {{"verb", "replicas"}}));
    std::map<ReplicaId, pid_t> guards;
    if (const Json* map = base::Find(answer, "guards"); map && map->is_object()) {
      for (const auto& [name, pid] : map->get_object()) {
        if (auto id = api::ReplicaIdFrom(name))
          guards[*id] = static_cast<pid_t>(pid.is_int64() ? pid.get_int64() : 0);
      }
    }
    ProcessMeter meter;
    meter.Measure(guards, io::Now());
    poll(nullptr, 0, kMeasureMs);
    std::map<ReplicaId, Used> out = meter.Measure(guards, io::Now());
    const Json* shards = base::Find(answer, "shards");
    for (auto& [id, used] : out) {
      const Json* own = shards ? base::Find(*shards, api::ToString(id)) : nullptr;
      if (!own) continue;
      used.sharing =
          api::Share{.doing = base::IntOr(*own, "doing"), .done = base::IntOr(*own, "done")};
      if (const Json* rate = base::Find(*own, "recordsPerSecond"); rate && rate->is_number()) {
        used.sharing->records_per_second = rate->to_number<double>();
      }
    }
    return out;
  }

  Result<Json> Audit() override {
    const api::Job job = TRY(job_.dir.LoadJob());
    if (!job.extensions.elastic) return std::unexpected(NotElastic(name()));
    return AuditLedger(LedgerJob(job), job_.dir.File("ledger"));
  }

  Result<> Scale(api::Role role, int32_t count) override {
    return Change({{"verb", "scale"}, {"role", api::Name(role)}, {"replicas", count}},
                  [&]() -> Result<> {
                    api::Job job = TRY(job_.dir.LoadJob());
                    job.spec.replicas[role].replicas = count;
                    if (auto errors = api::Validate(job); !errors.empty()) {
                      return base::Invalid(errors.front().path + ": " + errors.front().detail);
                    }
                    return job_.dir.SaveJob(job);
                  });
  }

  Result<> Suspend() override {
    return Change({{"verb", "suspend"}}, [&]() -> Result<> {
      api::Job job = TRY(job_.dir.LoadJob());
      if (api::IsTerminal(job.status))
        return base::Invalid(fmt::format("{} has ended already", name()));
      job.spec.run_policy.suspend = true;
      TRY(job_.dir.SaveJob(job));
      // Nothing of it lives, so the status is all there is to change.
      return job_.dir.SaveStatus(core::Reconcile(job, {}, {}, io::Now()).status);
    });
  }

  Result<> Stop(const std::string& by) override {
    return Change({{"verb", "stop"}, {"by", by}}, [&]() -> Result<> {
      const api::Job job = TRY(job_.dir.LoadJob());
      return job_.dir.SaveStatus(core::Stopped(job, by, io::Now()));
    });
  }

  // Until nobody holds the job's lock: all of its processes are gone.
  Result<bool> WaitUntilOver(std::optional<base::Time> until) override {
    while (job_.dir.IsAlive()) {
      if (until && io::Now() >= *until) return false;
      poll(nullptr, 0, 50);
    }
    return true;
  }

  Result<std::vector<std::string>> Delete(bool with_output) override {
    return RemoveRecords(job_, with_output);
  }

 private:
  // Asks the supervisor; without one, takes the job's lock and does it here.
  template <typename Alone>
  Result<> Change(JsonObject request, const Alone& alone) {
    auto answer = Ask(job_, std::move(request));
    if (answer) return {};
    if (answer.error().kind() != ErrorKind::kUnavailable) return std::unexpected(answer.error());
    auto lock = io::Lock::TryTake(job_.dir.File("lock"));
    if (!lock) {
      return std::unexpected(
          Error(ErrorKind::kUnavailable,
                fmt::format("the supervisor of {} does not answer: try again", name())));
    }
    return alone();
  }

  LocalJob job_;
};

class ThisMachine : public Place {
 public:
  std::string NamespaceOf(const Args& args) const override { return args.name_space(); }

  Result<std::vector<Listing>> List(const std::string& name_space) override {
    std::vector<Listing> out;
    for (Listed& job : backend::local::ListJobs(name_space)) {
      api::JobStatus status = job.dir.LoadStatus();
      if (DropIfExpired(job, status)) continue;
      const bool alive = !api::IsTerminal(status) && job.dir.IsAlive();
      out.push_back({job.name_space, job.name, std::move(status), alive});
    }
    return out;
  }

  Result<std::unique_ptr<PlacedJob>> Find(const std::string& name_space,
                                          const std::string& name) override {
    return std::make_unique<JobHere>(TRY(FindLocalJob(name_space, name)));
  }

  Result<std::unique_ptr<PlacedJob>> FindRemains(const std::string& name_space,
                                                 const std::string& name) override {
    const backend::local::JobDir dir = backend::local::Locate(name_space, name);
    const bool plain = !name.empty() && name.find('/') == std::string::npos && name[0] != '.';
    if (!plain || !io::IsDirectory(dir.path()))
      return std::unexpected(NoSuchJob(name_space, name, {}));
    return std::make_unique<JobHere>(LocalJob{name_space, name, dir});
  }
};

}  // namespace

std::string NewestModel(const std::string& output) {
  int64_t best = -1;
  std::string path;
  std::error_code error;
  for (auto it = std::filesystem::recursive_directory_iterator(output, error);
       !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    if (it->path().filename() != "saved_model.pb") continue;
    const std::string dir = it->path().parent_path().string();
    const int64_t version =
        base::ParseInt(it->path().parent_path().filename().string()).value_or(0);
    if (version > best) {
      best = version;
      path = dir;
    }
  }
  return path;
}

Kept KeptLocally(const backend::local::JobDir& dir, const std::string& output,
                 const std::string& name) {
  Kept out{.model = NewestModel(output), .logs = dir.File("logs")};
  out.next = (out.model.empty() ? "trainyard logs " : "trainyard serve ") + name;
  const std::string checkpoint = NewestCheckpoint(dir.File("checkpoints"));
  if (!checkpoint.empty())
    out.checkpoint = fmt::format("checkpoint {} in {}", checkpoint, dir.File("checkpoints"));
  return out;
}

std::unique_ptr<Place> OpenLocalPlace() { return std::make_unique<ThisMachine>(); }

}  // namespace cli
