#include "cli/attend.h"

#include <algorithm>
#include <csignal>

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/strings.h"
#include "cli/cluster_place.h"
#include "cli/display.h"
#include "cli/ending.h"
#include "cli/findings.h"
#include "cli/job_follow.h"
#include "cli/pod_logs.h"
#include "cli/pod_troubles.h"
#include "cli/pod_usage.h"
#include "cli/queue.h"
#include "cli/refuse.h"
#include "cli/watch.h"
#include "io/clock.h"
#include "io/signals.h"
#include "io/terminal.h"
#include "kube/api.h"

namespace cli {
namespace {

using api::ReplicaId;
using backend::cluster::Pod;
using base::Duration;
using base::Time;
using namespace std::chrono_literals;

constexpr Duration kTell = 5s;  // a trouble that lasts this long is told
// A running operator or master notes a stop at once. Wait no longer than this for it.
constexpr Duration kHeededWithin = 4s;
constexpr int kExitStopped = 65;

class Attendance : private Scene {
 public:
  Attendance(Cluster& cluster, Store store, const std::string& name_space, const std::string& name,
             const AttendOptions& options)
      : cluster_(cluster),
        store_(store),
        server_(cluster.server()),
        options_(options),
        name_space_(name_space),
        name_(name),
        follow_(cluster.door(store), server_, name_space, name),
        logs_(server_),
        lines_(options.raw),
        display_(false, options.json),
        began_(io::Now()) {}

  int Run();

 private:
  enum class Over { kNo, kEnded, kDeleted, kLost, kLeft, kUnheeded };

  void SetUp();
  Over Look(Time now);
  void Learn();
  void ReadLogs(Time now);
  void Tell(Time now);
  std::string Asked(Time now);
  void Wait(Time now);
  void HandleSignal(int signal);
  int Finish(Over over);

  std::optional<std::string> StateOf(ReplicaId id) const override;
  std::map<ReplicaId, Used> Measure(Time) override { return {}; }

  Cluster& cluster_;
  const Store store_;
  kube::Server& server_;
  const AttendOptions options_;
  const std::string name_space_, name_;
  JobFollow follow_;
  PodLogs logs_;
  LogView lines_;
  Display display_;
  io::Signals signals_;

  api::Job job_;  // as it was last seen
  bool seen_ = false;
  const Time began_;
  std::string trouble_;  // of the moment, and since when
  Time trouble_since_;
  std::string told_;
  std::string asked_;  // what keeps it from starting, as last asked for
  std::optional<Time> asked_at_;
  int interrupted_ = 0;
  Time interrupted_at_;
  bool leave_ = false;
};

void Attendance::SetUp() {
  signals_ = io::Signals({SIGINT, SIGTERM, SIGHUP, SIGWINCH});
  // One that came while the job was being made.
  if (const int early = TakeInterrupt()) HandleSignal(early);
}

int Attendance::Run() {
  SetUp();
  Over over = Over::kNo;
  while (over == Over::kNo) {
    const Time now = io::Now();
    over = Look(now);
    display_.Show(job_, *this, lines_, now, over != Over::kNo);
    if (over == Over::kNo) Wait(io::Now());
  }
  return Finish(over);
}

Attendance::Over Attendance::Look(Time now) {
  follow_.Advance(now);
  logs_.Watch(follow_.pods(), {});
  logs_.Advance(now);
  Learn();
  ReadLogs(now);
  Tell(now);
  if (leave_) return Over::kLeft;
  if (interrupted_ && !api::IsTerminal(job_.status) && now - interrupted_at_ > kHeededWithin)
    return Over::kUnheeded;
  if (!follow_.trouble().empty() && now - trouble_since_ > kAwayTooLong) return Over::kLost;
  if (!follow_.synced()) return Over::kNo;
  if (!follow_.job()) return seen_ || now - began_ > kTell ? Over::kDeleted : Over::kNo;
  if (follow_.IsQueued()) return Over::kNo;
  return follow_.over() && logs_.ended(follow_.pods()) ? Over::kEnded : Over::kNo;
}

void Attendance::Learn() {
  if (!follow_.TakeNews()) return;
  display_.Touch();
  if (const backend::cluster::StoredJob* stored = follow_.job()) {
    const api::Progress progress = job_.status.progress;
    job_ = *stored->value;
    if (job_.status.progress == api::Progress()) job_.status.progress = progress;
    seen_ = true;
  }
}

void Attendance::ReadLogs(Time now) {
  const std::vector<TimedChunk> chunks = logs_.Take();
  if (chunks.empty()) return;
  for (const TimedChunk& chunk : chunks) lines_.Feed(chunk.id, chunk.bytes, now);
  display_.Touch();
  const events::ProgressTracker* tracker = lines_.progress(Leader(job_.spec));
  if (!tracker) return;
  const events::Progress seen = tracker->At(now);
  api::Progress& progress = job_.status.progress;
  progress.percent = seen.percent;
  progress.step = seen.global_step;
  for (const events::Metric& metric : seen.metrics) progress.metrics[metric.name] = metric.value;
}

// Returns what keeps the job from starting. This takes requests, so it is called rarely, and not
// before the job had a moment to start.
std::string Attendance::Asked(Time now) {
  const std::vector<const Pod*> pods = follow_.pods();
  const bool unkept = job_.status.conditions.empty();
  const bool waits = unkept || !QueueOf(job_).empty() || NeedsWarnings(pods) ||
                     (!job_.spec.run_policy.suspend && !MissingOf(job_, pods).empty());
  if (!seen_ || api::IsTerminal(job_.status) || !waits) {
    asked_at_.reset();
    return asked_ = "";
  }
  if (asked_at_ && now < *asked_at_ + kTell) return asked_;
  const bool first = !asked_at_;
  asked_at_ = now;
  if (first) return asked_ = "";
  asked_.clear();
  if (const auto queued = WhyQueued(cluster_, job_)) return asked_ = InOneLine(*queued);
  if (unkept)
    return asked_ = InOneLine(WhyNobodyKeeps(cluster_, store_, job_, options_.again));
  auto events = EventsOf(cluster_, name_space_, name_, follow_.job() ? follow_.job()->uid : "");
  std::vector<Trouble> found =
      NeedsWarnings(pods) ? TroublesOf(pods, WarningsAboutPods(cluster_, name_space_))
                          : std::vector<Trouble>();
  if (found.empty() && events) found = Refusals(job_, pods, *events);
  if (!found.empty()) asked_ = InOneLine(found.back());
  return asked_;
}

// Prints what keeps the job from starting or ending once it lasts, and again when it changes.
void Attendance::Tell(Time now) {
  std::string trouble = follow_.trouble();
  if (trouble.empty()) {
    for (const Trouble& one : TroublesOf(follow_.pods())) trouble = InOneLine(one);
    for (const Trouble& one : EndedServers(job_)) trouble = InOneLine(one);
    if (trouble.empty()) trouble = Asked(now);
  }
  if (trouble != trouble_) {
    trouble_ = trouble;
    trouble_since_ = now;
  }
  // What was asked for has lasted for so long already.
  const bool lasts = trouble == asked_ || now - trouble_since_ >= kTell;
  if (trouble.empty() || trouble == told_ || !lasts) return;
  told_ = trouble;
  display_.Say(trouble);
}

void Attendance::Wait(Time now) {
  Time wake = now + 1s;
  for (const auto& due : {follow_.next(), logs_.next(), display_.look_again(lines_)}) {
    if (due) wake = std::min(wake, *due);
  }
  pollfd told{.fd = signals_.fd(), .events = POLLIN, .revents = 0};
  server_.Poll(std::max(wake - now, Duration(1ms)), {&told, 1});
  for (int signal : signals_.Take()) HandleSignal(signal);
}

void Attendance::HandleSignal(int signal) {
  if (signal == SIGWINCH) return display_.Resized();
  if (signal == SIGHUP || interrupted_ != 0) {
    leave_ = true;
    return;
  }
  interrupted_ = signal;
  interrupted_at_ = io::Now();
  display_.set_note("stopping: Ctrl-C again to leave it to the cluster");
  const std::string by = signal == SIGINT ? "Ctrl-C" : fmt::format("SIG{}", sigabbrev_np(signal));
  // Not waited for: the server may be away.
  cluster_.door(store_).Send(StopRequest(name_space_, name_, by), kHeededWithin,
                             [this](base::Result<kube::Response> answer) {
                               const auto error =
                                   answer ? kube::ErrorOf(*answer) : answer.error();
                               if (error) display_.Say("cannot stop it: " + error->text());
                             });
}

int Attendance::Finish(Over over) {
  const int fd = options_.json ? 2 : 1;
  switch (over) {
    case Over::kNo:
    case Over::kLeft:
      io::WriteOut(2, fmt::format("trainyard: left; {} goes on: trainyard logs -f {}{}\n", name_,
                                  name_, options_.again));
      return interrupted_ ? 128 + interrupted_ : kExitLost;
    case Over::kUnheeded:
      io::WriteOut(2, fmt::format("trainyard: nobody has stopped {} yet{}; to remove it: trainyard "
                                  "delete --force {}{}\n",
                                  name_, trouble_.empty() ? "" : ": " + trouble_, name_,
                                  options_.again));
      return 128 + interrupted_;
    case Over::kLost:
      io::WriteOut(2, fmt::format("trainyard: lost contact: {}\n", follow_.trouble()));
      return kExitLost;
    case Over::kDeleted:
      io::WriteOut(2, fmt::format("trainyard: {} was deleted by somebody\n", name_));
      return kExitStopped;
    case Over::kEnded:
      break;
  }
  io::WriteOut(fd, Ending(job_, KeptThere(job_, options_.again), io::TerminalOf(fd)));
  const bool stopped = job_.status.verdict && job_.status.verdict->result == "stopped";
  return interrupted_ && stopped ? 128 + interrupted_ : ExitStatus(job_.status);
}

std::optional<std::string> Attendance::StateOf(ReplicaId id) const {
  for (const Pod* pod : follow_.pods()) {
    if (pod->replica.id != id || core::HasEnded(pod->replica)) continue;
    if (pod->replica.deleting) return "ending";
    if (pod->replica.phase == core::Phase::kRunning) return "running";
    if (!pod->trouble.empty()) return base::Lower(pod->trouble);
    return pod->node.empty() ? "scheduling" : "starting";
  }
  return std::nullopt;
}

}  // namespace

int Attend(Cluster& cluster, Store store, const std::string& name_space, const std::string& name,
           const AttendOptions& options) {
  return Attendance(cluster, store, name_space, name, options).Run();
}

}  // namespace cli
