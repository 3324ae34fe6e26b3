#include "cli/supervise.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>

#include <fcntl.h>
#include <fmt/core.h>
#include <pwd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/decode.h"
#include "base/json.h"
#include "cli/ending.h"
#include "cli/live_block.h"
#include "cli/log_tail.h"
#include "cli/log_view.h"
#include "controller/step.h"
#include "core/reconcile.h"
#include "core/restart_policy.h"
#include "events/log_dir.h"
#include "io/clock.h"
#include "io/process.h"
#include "io/terminal.h"
#include "io/unix_socket.h"

namespace cli {
namespace {

using api::ReplicaId;
using backend::local::LocalBackend;
using base::Duration;
using base::Time;
using namespace std::chrono_literals;

constexpr Duration kRedraw = 100ms;     // at most ten times a second
constexpr Duration kSample = 1s;        // CPU and memory, while somebody looks
constexpr Duration kSummary = 10s;      // one line, when the output is no terminal
constexpr Duration kGather = 50ms;      // log files that grow are read at most this often
constexpr Duration kSaveProgress = 2s;  // how often progress goes into the status
constexpr Duration kPollEvents = 2s;    // event files, while logs grow
constexpr Duration kRetry = 1s;         // after a failed write of the status

class Supervisor {
 public:
  Supervisor(std::unique_ptr<LocalBackend> world, api::Job job, const SuperviseOptions& options)
      : world_(std::move(world)),
        job_(std::move(job)),
        options_(options),
        terminal_(io::TerminalOf(1)),
        log_view_(options.raw),
        event_files_(world_->dir().File("tensorboard")) {}

  int Run();

 private:
  struct Sample {
    int64_t cpu_ticks = 0;
    double cpu_percent = 0;
    int64_t memory = 0;
  };

  void SetUp();
  void Loop();
  bool Finished() const;
  int Timeout(Time now) const;
  void HandleSignal(int signal);
  std::string Answer(const std::string& line);
  base::Result<> Scale(const base::Json& request);
  void StopJob(const std::string& by);
  void EndReplicas(bool graceful);
  void ReadLogs(Time now);
  void UpdateProgress(Time now, bool force);
  void TakeSample(Time now);
  LiveModel Model(Time now) const;
  std::string RowState(ReplicaId id, Time now) const;
  ReplicaId Leader() const;
  void Show(Time now, bool last);
  void Say(const std::string& line);

  // Constant after construction.
  std::unique_ptr<LocalBackend> world_;
  api::Job job_;
  const SuperviseOptions options_;
  io::Terminal terminal_;
  core::Policy policy_;

  std::optional<io::RequestServer> server_;
  io::Fd signals_, watch_;
  std::map<ReplicaId, LogTail> tails_;
  LogView log_view_;
  events::LogDirReader event_files_;
  std::map<ReplicaId, Sample> samples_;
  std::vector<double> losses_;
  std::vector<std::string> said_;  // lines of our own to show between the logs
  std::string note_;

  std::optional<Time> look_again_;
  bool step_now_ = true;
  bool logs_grew_ = true;
  bool redraw_ = true;
  Time read_logs_at_, drawn_at_, sampled_at_, summary_at_, progress_at_, events_at_;
  int block_lines_ = 0;
  int interrupted_ = 0;  // the signal that asked us to end
  int interrupts_ = 0;
};

void Supervisor::SetUp() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signals_ = io::Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  watch_ = io::Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  inotify_add_watch(watch_.get(), world_->dir().File("logs").c_str(), IN_MODIFY | IN_CREATE);
  const std::string path = SocketPath(job_.metadata.name_space, job_.metadata.name);
  auto server = io::RequestServer::Listen(path);
  if (server) {
    server_ = std::move(*server);
  } else {
    Say("other commands cannot reach this job: " + server.error().text());
  }
}

int Supervisor::Run() {
  SetUp();
  Loop();
  const Time now = io::Now();
  ReadLogs(now);
  UpdateProgress(now, true);
  Show(now, true);
  if (!options_.quiet) {
    const int fd = options_.json ? 2 : 1;
    io::WriteOut(fd, Ending(job_, world_->dir(), world_->run().output, io::TerminalOf(fd)));
  }
  if (interrupted_ && job_.status.verdict && job_.status.verdict->result == "stopped")
    return 128 + interrupted_;
  return ExitStatus(job_.status);
}

bool Supervisor::Finished() const {
  const bool over = api::IsTerminal(job_.status) || api::Has(job_.status, "Suspended");
  return over && !world_->AnyAlive();
}

void Supervisor::Loop() {
  while (true) {
    Time now = io::Now();
    if (step_now_ || (look_again_ && now >= *look_again_)) {
      step_now_ = false;
      const controller::Turn turn = controller::Step(*world_, job_, policy_, now);
      look_again_ = turn.look_again;
      redraw_ = true;
      if (turn.error) {
        Say(turn.error->text());
        look_again_ = now + kRetry;
      } else if (turn.acted) {
        step_now_ = true;
      }
      if (Finished()) return;
    }
    if (logs_grew_ && now >= read_logs_at_ + kGather) ReadLogs(now);
    UpdateProgress(now, false);
    if (terminal_.is_terminal && !options_.quiet && now >= sampled_at_ + kSample) TakeSample(now);
    Show(now, false);

    std::vector<pollfd> fds = world_->PollSet();
    const size_t guards = fds.size();
    fds.push_back({signals_.get(), POLLIN, 0});
    fds.push_back({server_ ? server_->fd() : -1, POLLIN, 0});
    // While logs grow we read them by the clock; the watch only wakes us from quiet.
    fds.push_back({logs_grew_ ? -1 : watch_.get(), POLLIN, 0});
    if (poll(fds.data(), fds.size(), Timeout(io::Now())) <= 0) continue;

    if (std::any_of(fds.begin(), fds.begin() + static_cast<ptrdiff_t>(guards),
                    [](const pollfd& f) { return f.revents != 0; })) {
      world_->Collect();
      step_now_ = logs_grew_ = true;
    }
    if (fds[guards].revents) {
      signalfd_siginfo info;
      while (read(signals_.get(), &info, sizeof info) == sizeof info)
        HandleSignal(static_cast<int>(info.ssi_signo));
    }
    if (fds[guards + 1].revents) {
      server_->Serve([this](const std::string& line) { return Answer(line); });
      step_now_ = true;
    }
    if (fds[guards + 2].revents) {
      char drained[4096];
      while (read(watch_.get(), drained, sizeof drained) > 0) {
      }
      logs_grew_ = true;
    }
  }
}

// Milliseconds until something of ours is due; -1 when only the world can wake us.
int Supervisor::Timeout(Time now) const {
  if (step_now_) return 0;
  std::optional<Time> next = look_again_;
  const auto at = [&](Time time) {
    if (!next || time < *next) next = time;
  };
  if (logs_grew_) at(read_logs_at_ + kGather);
  if (auto time = log_view_.look_again()) at(*time);
  if (!options_.quiet) {
    if (redraw_) at(drawn_at_ + kRedraw);
    if (terminal_.is_terminal) at(sampled_at_ + kSample);
  }
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - now).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

void Supervisor::HandleSignal(int signal) {
  if (signal == SIGWINCH) {
    terminal_ = io::TerminalOf(1);
    redraw_ = true;
    return;
  }
  if (++interrupts_ > 1) return EndReplicas(false);
  interrupted_ = signal;
  note_ = "stopping: Ctrl-C again to kill at once";
  StopJob(signal == SIGINT ? "Ctrl-C" : fmt::format("SIG{}", sigabbrev_np(signal)));
}

void Supervisor::StopJob(const std::string& by) {
  if (api::IsTerminal(job_.status)) return EndReplicas(true);  // those that take their time to end
  const api::JobStatus status = core::Stopped(job_, by, io::Now());
  if (auto published = world_->Publish(job_, status, {{false, "TFJobStopped", "stopped by " + by}});
      !published) {
    Say(published.error().text());
  }
  job_.status = status;
  step_now_ = true;
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
  TRY(world_->LeasePortsFor(changed));
  TRY(world_->dir().SaveJob(changed));
  job_ = std::move(changed);
  return {};
}

void Supervisor::ReadLogs(Time now) {
  read_logs_at_ = now;
  bool any = false;
  for (const LocalBackend::Living& living : world_->LivingReplicas()) {
    tails_.try_emplace(living.id, world_->dir().LogFile(living.id));
  }
  for (auto& [id, tail] : tails_) {
    const std::string bytes = tail.ReadNew();
    if (bytes.empty()) continue;
    any = true;
    NoteTime(world_->dir().LogFile(id), tail.offset(), now);
    log_view_.Feed(id, bytes, now);
  }
  logs_grew_ = any;
  if (any) redraw_ = true;
}

ReplicaId Supervisor::Leader() const {
  for (api::Role role : {api::Role::kChief, api::Role::kMaster, api::Role::kWorker}) {
    if (api::ReplicasOf(job_.spec, role) > 0) return {role, 0};
  }
  return {api::Role::kPs, 0};
}

// Into the status goes what a later `ps` shows; into the model of the display it comes at once.
void Supervisor::UpdateProgress(Time now, bool force) {
  if (!force && (!redraw_ || now < progress_at_ + kSaveProgress)) return;
  progress_at_ = now;
  api::Progress progress;
  if (const events::ProgressTracker* tracker = log_view_.progress(Leader())) {
    const events::Progress seen = tracker->At(now);
    progress.percent = seen.percent;
    progress.step = seen.global_step;
    if (!api::IsTerminal(job_.status)) progress.remaining = seen.eta;
    for (const events::Metric& metric : seen.metrics) progress.metrics[metric.name] = metric.value;
  }
  event_files_.Poll(now, 64 << 20);
  for (const auto& [run, series] : event_files_.runs()) {
    for (const auto& [tag, values] : series) {
      if (!values.latest() || progress.metrics.size() >= 32) continue;
      const std::string name = run == "." ? tag : run + "/" + tag;
      progress.metrics.try_emplace(name, values.latest()->value);
      if (!progress.step) progress.step = values.latest()->step;
    }
  }
  if (api::Has(job_.status, "Succeeded")) progress.percent = 100;
  if (progress.metrics.contains("loss")) losses_.push_back(progress.metrics["loss"]);
  world_->set_progress(progress);
  if (progress == job_.status.progress) return;
  if (!force) {
    step_now_ = true;
    return;
  }
  api::JobStatus status = job_.status;
  status.progress = progress;
  base::IgnoreError(world_->Publish(job_, status, {}), "the verdict is on disk already");
  job_.status = status;
}

void Supervisor::TakeSample(Time now) {
  const std::vector<io::ProcessState> all = io::ListProcesses();
  const double seconds = std::chrono::duration<double>(now - sampled_at_).count();
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  std::map<ReplicaId, Sample> fresh;
  for (const LocalBackend::Living& living : world_->LivingReplicas()) {
    Sample sample;
    for (const io::ProcessState& process : io::DescendantsOf(living.guard, all)) {
      sample.cpu_ticks += process.cpu_ticks;
      sample.memory += process.resident_bytes;
    }
    if (const auto old = samples_.find(living.id); old != samples_.end()) {
      const double used =
          static_cast<double>(sample.cpu_ticks - old->second.cpu_ticks) / ticks_per_second;
      sample.cpu_percent = std::max(0.0, 100 * used / seconds);
    }
    fresh[living.id] = sample;
  }
  samples_ = std::move(fresh);
  sampled_at_ = now;
  redraw_ = true;
}

std::string Supervisor::RowState(ReplicaId id, Time now) const {
  if (job_.status.completed.contains(id)) return "done";
  for (const LocalBackend::Living& living : world_->LivingReplicas()) {
    if (living.id == id) return living.program ? "running" : "starting";
  }
  if (api::IsTerminal(job_.status)) return "ended";
  const auto unit = job_.status.units.find(id);
  const Time not_before =
      unit != job_.status.units.end() ? unit->second.not_before : job_.status.gang.not_before;
  if (not_before > now) {
    return fmt::format("waits {}s",
                       std::chrono::ceil<std::chrono::seconds>(not_before - now).count());
  }
  return "waiting";
}

LiveModel Supervisor::Model(Time now) const {
  LiveModel model;
  for (ReplicaId id : backend::local::ReplicasInOrder(job_.spec)) {
    LiveRow row{.name = api::Spoken(id), .state = RowState(id, now)};
    if (const events::ProgressTracker* tracker = log_view_.progress(id)) {
      const events::Progress seen = tracker->At(now);
      row.step = seen.global_step;
      row.steps_per_second = seen.steps_per_second;
      for (const events::Metric& metric : seen.metrics) {
        if (metric.name == "loss") row.loss = metric.value;
      }
      if (id == Leader()) {
        model.percent = seen.percent;
        model.eta = seen.eta;
      }
    }
    if (const auto sample = samples_.find(id); sample != samples_.end()) {
      row.cpu_percent = sample->second.cpu_percent;
      row.memory_bytes = sample->second.memory;
    }
    if (auto last = log_view_.last(id)) row.since_output = now - *last;
    model.rows.push_back(std::move(row));
  }
  model.losses = losses_;
  model.restarts = job_.status.restarts + job_.status.disruptions;
  model.note = note_;
  return model;
}

void Supervisor::Say(const std::string& line) {
  said_.push_back(line);
  redraw_ = true;
}

// Logs scroll above, the block stays at the bottom: take the block away, write the lines, draw it
// again.
void Supervisor::Show(Time now, bool last) {
  if (options_.quiet) return;
  if (!last && (!redraw_ || now < drawn_at_ + kRedraw)) return;
  const bool block = terminal_.is_terminal && !options_.json;
  std::string out;
  if (block && block_lines_ > 0) out += fmt::format("\x1b[{}A\r\x1b[J", block_lines_);
  block_lines_ = 0;
  const size_t width = PrefixWidth(backend::local::ReplicasInOrder(job_.spec));
  for (const LogLine& line : last ? log_view_.TakeAll() : log_view_.Take(now)) {
    if (options_.json) {
      out += base::CompactJson(base::JsonObject{{"time", base::FormatTimeMicro(now)},
                                                {"replica", api::Spoken(line.id)},
                                                {"copies", line.others.size() + 1},
                                                {"line", line.text}}) +
             "\n";
    } else {
      out += Prefixed(line, width, terminal_.colour) + "\n";
    }
  }
  for (const std::string& line : said_) out += (options_.json ? "" : "trainyard: " + line + "\n");
  said_.clear();
  if (block && !last) {
    const std::vector<std::string> lines =
        RenderBlock(Model(now), terminal_.width - 1, terminal_.unicode);
    out += "\n";
    for (const std::string& line : lines) out += line + "\n";
    block_lines_ = static_cast<int>(lines.size()) + 1;
  } else if (!terminal_.is_terminal && !options_.json && !last && now >= summary_at_ + kSummary) {
    if (summary_at_ != Time())
      out += "trainyard: " + RenderLine(Model(now), terminal_.unicode) + "\n";
    summary_at_ = now;
  }
  if (!out.empty()) io::WriteOut(1, out);
  drawn_at_ = now;
  redraw_ = false;
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
  return Supervisor(std::move(world), std::move(job), options).Run();
}

}  // namespace cli
