#include "cli/supervise.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>

#include <fmt/core.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/decode.h"
#include "base/duration.h"
#include "base/json.h"
#include "cli/display.h"
#include "cli/elastic_world.h"
#include "cli/ending.h"
#include "cli/local_place.h"
#include "cli/refuse.h"
#include "cli/usage.h"
#include "cli/watch.h"
#include "controller/step.h"
#include "core/reconcile.h"
#include "io/clock.h"
#include "io/signals.h"
#include "io/terminal.h"
#include "io/unix_socket.h"

namespace cli {
namespace {

using backend::local::LocalBackend;
using base::Duration;
using base::Time;
using namespace std::chrono_literals;

constexpr Duration kGather = 50ms;      // log files that grow are read at most this often
constexpr Duration kSaveProgress = 2s;  // how often progress goes into the status
constexpr Duration kRetry = 1s;         // after a failed write of the status
// A training that printed steps and then nothing for this long is told to be stuck; acted on only
// if the user said so.
constexpr Duration kStalled = 10min;

base::Json SharesInJson(const std::map<api::ReplicaId, api::Share>& shares) {
  base::JsonObject out;
  for (const auto& [id, share] : shares) {
    out[api::ToString(id)] = base::JsonObject{{"doing", share.doing},
                                              {"done", share.done},
                                              {"recordsPerSecond", share.records_per_second}};
  }
  return out;
}

// The job's processes, for the display.
class ProcessScene : public Scene {
 public:
  explicit ProcessScene(const LocalBackend& world) : world_(world) {}

  std::optional<std::string> StateOf(api::ReplicaId id) const override {
    for (const LocalBackend::Living& living : world_.LivingReplicas()) {
      if (living.id == id) return living.program ? "running" : "starting";
    }
    return std::nullopt;
  }

  std::map<api::ReplicaId, Used> Measure(Time now) override {
    std::map<api::ReplicaId, pid_t> guards;
    for (const LocalBackend::Living& living : world_.LivingReplicas())
      guards[living.id] = living.guard;
    return meter_.Measure(guards, now);
  }

 private:
  const LocalBackend& world_;
  ProcessMeter meter_;
};

class Supervisor {
 public:
  Supervisor(std::unique_ptr<LocalBackend> world, std::unique_ptr<ElasticWorld> elastic,
             api::Job job, const SuperviseOptions& options)
      : world_(std::move(world)),
        elastic_(std::move(elastic)),
        job_(std::move(job)),
        options_(options),
        watch_(world_->dir(), options.raw),
        display_(options.quiet, options.json) {}

  int Run();

 private:
  backend::Backend& World() {
    return elastic_ ? static_cast<backend::Backend&>(*elastic_) : *world_;
  }
  void SetUp();
  void Loop();
  void TakeTurn(Time now);
  void Wait(Time now);
  bool Finished() const;
  int Timeout(Time now) const;
  void HandleSignal(int signal);
  std::string Answer(const std::string& line);
  base::Result<> Scale(const base::Json& request);
  void StopJob(const std::string& by);
  void EndReplicas(bool graceful);
  void UpdateProgress(Time now, bool last);
  void LookForHang(Time now);
  void HearMaster(Time now);

  std::unique_ptr<LocalBackend> world_;
  std::unique_ptr<ElasticWorld> elastic_;  // of an elastic job: world_, and who hands out its data
  api::Job job_;
  const SuperviseOptions options_;
  core::Policy policy_;
  JobWatch watch_;
  ProcessScene scene_{*world_};
  Display display_;
  std::optional<io::RequestServer> server_;
  io::Signals signals_;
  io::Fd log_notices_;

  std::optional<Time> look_again_;  // of the last turn
  std::optional<Time> hang_at_;     // when to look whether the job still gets anywhere
  bool turn_now_ = true;
  bool logs_grew_ = true;
  bool stall_told_ = false;
  std::string last_error_;  // told once, however often it comes
  Time read_logs_, saved_progress_;
  std::optional<Time> show_data_;  // when what has changed of the data goes into the status
  int interrupted_ = 0;            // the signal that asked us to end
  int interrupts_ = 0;
};

void Supervisor::SetUp() {
  signals_ = io::Signals({SIGINT, SIGTERM, SIGHUP, SIGWINCH});
  log_notices_ = io::Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  inotify_add_watch(log_notices_.get(), world_->dir().File("logs").c_str(), IN_MODIFY | IN_CREATE);
  auto server = io::RequestServer::Listen(SocketPath(job_.metadata.name_space, job_.metadata.name));
  if (server) {
    server_ = std::move(*server);
  } else {
    display_.Say("other commands cannot reach this job: " + server.error().text());
  }
}

int Supervisor::Run() {
  SetUp();
  Loop();
  const Time now = io::Now();
  watch_.ReadLogs(job_.spec, now);
  UpdateProgress(now, true);
  display_.Show(job_, scene_, watch_.lines(), now, true);
  if (!options_.quiet) {
    const int fd = options_.json ? 2 : 1;
    const Kept kept = KeptLocally(world_->dir(), world_->run().output, job_.metadata.name);
    io::WriteOut(fd, Ending(job_, kept, io::TerminalOf(fd)));
  }
  const bool stopped = job_.status.verdict && job_.status.verdict->result == "stopped";
  return interrupted_ && stopped ? 128 + interrupted_ : ExitStatus(job_.status);
}

bool Supervisor::Finished() const {
  const bool over = api::IsTerminal(job_.status) || api::Has(job_.status, "Suspended");
  return over && !world_->AnyAlive();
}

void Supervisor::Loop() {
  while (true) {
    const Time now = io::Now();
    if (elastic_ && elastic_->Tend(now)) turn_now_ = true;
    if (show_data_ && now >= *show_data_) {
      show_data_.reset();
      UpdateProgress(now, false);
      turn_now_ = true;
    }
    if (turn_now_ || (look_again_ && now >= *look_again_)) {
      TakeTurn(now);
      if (Finished()) return;
    }
    if (logs_grew_ && now >= read_logs_ + kGather) {
      read_logs_ = now;
      logs_grew_ = watch_.ReadLogs(job_.spec, now);
      if (logs_grew_) {
        display_.Touch();
        UpdateProgress(now, false);
      }
    }
    LookForHang(now);
    display_.Show(job_, scene_, watch_.lines(), now, false);
    Wait(io::Now());
  }
}

void Supervisor::TakeTurn(Time now) {
  turn_now_ = false;
  const int32_t attempt = job_.status.attempt;
  const controller::Turn turn = controller::Step(World(), job_, policy_, now);
  look_again_ = turn.look_again;
  if (turn.error) {
    if (turn.error->text() != last_error_) display_.Say(turn.error->text());
    look_again_ = now + kRetry;
  }
  last_error_ = turn.error ? turn.error->text() : "";
  for (const std::string& notice : world_->TakeNotices()) display_.Say(notice);
  turn_now_ = (turn.removed && !turn.error) || world_->TakeStartFailed();
  if (job_.status.attempt != attempt) {
    watch_.Restarted(now);
    stall_told_ = false;
  }
  display_.Touch();
}

void Supervisor::Wait(Time now) {
  std::vector<pollfd> fds = world_->PollSet();
  const size_t guards = fds.size();
  fds.push_back({signals_.fd(), POLLIN, 0});
  fds.push_back({server_ ? server_->fd() : -1, POLLIN, 0});
  // While logs grow we read them by the clock; the notices only wake us from quiet.
  fds.push_back({logs_grew_ ? -1 : log_notices_.get(), POLLIN, 0});
  fds.push_back(elastic_ ? elastic_->Poll() : pollfd{-1, 0, 0});
  if (poll(fds.data(), fds.size(), Timeout(now)) <= 0) return;

  if (std::any_of(fds.begin(), fds.begin() + static_cast<ptrdiff_t>(guards),
                  [](const pollfd& f) { return f.revents != 0; })) {
    world_->Collect();
    turn_now_ = logs_grew_ = true;
  }
  if (fds[guards].revents) {
    for (int signal : signals_.Take()) HandleSignal(signal);
  }
  if (fds[guards + 1].revents) {
    server_->Serve([this](const std::string& line) { return Answer(line); });
    turn_now_ = true;
  }
  if (fds[guards + 2].revents) {
    char drained[4096];
    while (read(log_notices_.get(), drained, sizeof drained) > 0) {
    }
    logs_grew_ = true;
  }
  if (fds[guards + 3].revents) HearMaster(io::Now());
}

// Counts change with every shard; decisions rest on few of them.
void Supervisor::HearMaster(Time now) {
  if (elastic_->Collect(now)) turn_now_ = true;
  if (!show_data_) show_data_ = std::max(now, saved_progress_ + kSaveProgress);
  const std::vector<core::Event> events = elastic_->TakeEvents();
  for (const core::Event& event : events) {
    if (event.warning) display_.Say(event.message);
  }
  if (!events.empty()) {
    base::IgnoreError(world_->Publish(job_, job_.status, events), "events inform");
  }
  display_.Touch();
}

// Milliseconds until something of ours is due; -1 when only the world can wake us.
int Supervisor::Timeout(Time now) const {
  if (turn_now_) return 0;
  std::optional<Time> next = look_again_;
  const auto at = [&](std::optional<Time> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  if (logs_grew_) at(read_logs_ + kGather);
  at(hang_at_);
  at(show_data_);
  if (elastic_) at(elastic_->look_again());
  at(display_.look_again(watch_.lines()));
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
}

void Supervisor::HandleSignal(int signal) {
  if (signal == SIGWINCH) return display_.Resized();
  if (++interrupts_ > 1) return EndReplicas(false);
  interrupted_ = signal;
  display_.set_note("stopping: Ctrl-C again to kill at once");
  StopJob(signal == SIGINT ? "Ctrl-C" : fmt::format("SIG{}", sigabbrev_np(signal)));
}

// A job that has finished by now has succeeded; the core decides that.
void Supervisor::StopJob(const std::string& by) {
  if (api::IsTerminal(job_.status)) return EndReplicas(true);  // those that take their time to end
  api::Job wished = job_;
  wished.extensions.stopped_by = by;
  const core::Decision decision =
      core::Reconcile(wished, World().Observe(job_), policy_, io::Now());
  if (auto published = world_->Publish(job_, decision.status, decision.events); !published) {
    display_.Say(published.error().text());
  }
  job_.status = decision.status;
  turn_now_ = true;
}

void Supervisor::EndReplicas(bool graceful) {
  for (const core::ReplicaState& r : world_->Observe(job_).replicas) {
    if (!core::HasEnded(r)) {
      base::IgnoreError(world_->Perform(job_, core::Stop{r.id, r.incarnation, graceful}),
                        "a stop cannot fail here");
    }
  }
}

std::string Supervisor::Answer(const std::string& line) {
  base::JsonObject answer;
  auto request = base::ParseJson(line);
  const std::string verb = request ? base::StringOr(*request, "verb") : "";
  base::Result<> done;
  if (verb == "stop") {
    StopJob(base::StringOr(*request, "by", "somebody"));
  } else if (verb == "suspend") {
    job_.spec.run_policy.suspend = true;
    done = world_->dir().SaveJob(job_);
  } else if (verb == "scale") {
    done = Scale(*request);
  } else if (verb == "replicas") {
    base::JsonObject guards;
    for (const LocalBackend::Living& living : world_->LivingReplicas()) {
      guards[api::ToString(living.id)] = living.guard;
    }
    answer["guards"] = std::move(guards);
    if (elastic_) answer["shards"] = SharesInJson(elastic_->Shares());
  } else {
    done = base::Invalid("unknown request");
  }
  if (!done) answer["error"] = done.error().text();
  return base::CompactJson(answer);
}

base::Result<> Supervisor::Scale(const base::Json& request) {
  const auto role = api::RoleFromName(base::StringOr(request, "role"));
  const int64_t replicas = base::IntOr(request, "replicas", -1);
  if (!role || !job_.spec.replicas.contains(*role))
    return base::Invalid("the job has no such role");
  api::Job changed = job_;
  changed.spec.replicas[*role].replicas =
      static_cast<int32_t>(std::clamp<int64_t>(replicas, -1, 1'000'000));
  if (auto errors = api::Validate(changed); !errors.empty()) {
    return base::Invalid(errors.front().path + ": " + errors.front().detail);
  }
  TRY(world_->LeaseFor(changed));
  TRY(world_->dir().SaveJob(changed));
  job_ = std::move(changed);
  return {};
}

// Into the status goes what a later `ps` shows.
void Supervisor::UpdateProgress(Time now, bool last) {
  if (!last && now < saved_progress_ + kSaveProgress) return;
  saved_progress_ = now;
  api::Progress progress = watch_.ReadProgress(job_, now);
  if (elastic_) elastic_->AddProgress(progress);
  world_->set_progress(progress);
  if (progress == job_.status.progress) return;
  if (!last) {
    turn_now_ = true;
    return;
  }
  api::JobStatus status = job_.status;
  status.progress = progress;
  base::IgnoreError(world_->Publish(job_, status, {}), "the verdict is on disk already");
  job_.status = status;
}

// A collective that has lost a message waits for ever and looks alive. We say so; with
// --hang-restart the replicas that train get SIGABRT, on which Python prints where each thread is,
// and the restart policy does the rest.
void Supervisor::LookForHang(Time now) {
  hang_at_.reset();
  if (!api::Has(job_.status, "Running") || api::IsTerminal(job_.status)) return;
  const auto since = watch_.SinceAdvance(job_.spec, now);
  if (!since) return;
  const Duration limit = world_->run().hang_seconds > 0
                             ? Duration(std::chrono::seconds(world_->run().hang_seconds))
                             : kStalled;
  if (*since < limit) {
    hang_at_ = now + (limit - *since);
    stall_told_ = false;
    return;
  }
  if (stall_told_) return;
  stall_told_ = true;
  const std::string words = fmt::format("no progress for {}", base::FormatDuration(*since));
  display_.Say(words);
  base::IgnoreError(world_->Publish(job_, job_.status, {{true, "TFJobStalled", words}}),
                    "events inform");
  if (world_->run().hang_seconds > 0) world_->AbortTraining(words);
}

}  // namespace

std::string SocketPath(const std::string& name_space, const std::string& name) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::string dir = runtime && *runtime ? std::string(runtime) + "/trainyard" : "";
  constexpr size_t kMostBytes = 107, kHash = 17;  // of a socket's path; of a slash and a hash
  if (dir.empty() || dir.size() + kHash > kMostBytes)
    dir = fmt::format("/tmp/trainyard-{}", getuid());
  mkdir(dir.c_str(), 0700);
  // Below /tmp anybody may have made it before us.
  struct stat info{};
  if (lstat(dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
    return "";
  // Jobs of two state directories may share a name.
  const std::hash<std::string> hash;
  const std::string home = backend::local::HomePath();
  const std::string path =
      fmt::format("{}/{:08x}-{}-{}", dir, static_cast<uint32_t>(hash(home)), name_space, name);
  if (path.size() <= kMostBytes) return path;
  return fmt::format("{}/{:016x}", dir, hash(home + "/" + name_space + "/" + name));
}

int Supervise(std::unique_ptr<LocalBackend> world, api::Job job, const SuperviseOptions& options) {
  std::unique_ptr<ElasticWorld> elastic;
  if (job.extensions.elastic) {
    auto opened = ElasticWorld::Open(*world, job);
    if (!opened) return Refuse(opened.error());
    elastic = std::move(*opened);
  }
  return Supervisor(std::move(world), std::move(elastic), std::move(job), options).Run();
}

}  // namespace cli
