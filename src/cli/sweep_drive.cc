#include "cli/sweep_drive.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <poll.h>

#include "base/strings.h"
#include "cli/ending.h"
#include "cli/live_block.h"
#include "cli/refuse.h"
#include "cli/sweep_report.h"
#include "cli/trial_job.h"
#include "io/clock.h"
#include "io/signals.h"
#include "io/terminal.h"

namespace cli {
namespace {

using base::Result;
using sweep::State;
using sweep::Trial;
using namespace std::chrono_literals;

constexpr int kLookMs = 100;
constexpr int kSeldomMs = 500;  // once nothing has ended for a while
constexpr base::Duration kQuiet = 10s;
constexpr base::Duration kRedraw = 500ms;
constexpr base::Duration kSayAnyway = 30s;  // where nobody sees a board
constexpr base::Duration kLongestAway = 5min;
constexpr int kExitStopped = 65;  // by somebody
constexpr size_t kAlike = 3;      // failures that mean that all will fail

// Without what differs between trials that fail alike.
std::string Pattern(const std::string& cause) {
  std::string out;
  for (char c : cause) {
    const bool digit = (c >= '0' && c <= '9') || c == '.' || c == '-' || c == 'e';
    if (!digit) out += c;
  }
  return out;
}

class Screen {
 public:
  explicit Screen(bool json) : json_(json), terminal_(io::TerminalOf(1)) {}

  void Line(const std::string& text) {
    io::WriteOut(1, Cleared() + text + "\n");
    said_ = io::Now();
  }
  // Standing below the lines.
  void Board(const std::vector<std::string>& rows, base::Time now) {
    if (json_) return;
    if (!terminal_.is_terminal) {
      if (now - said_ > kSayAnyway) Line(rows.back());
      return;
    }
    if (now - drawn_ < kRedraw) return;
    drawn_ = now;
    std::string out = Cleared();
    for (const std::string& row : rows) out += Elide(row, terminal_.width - 1) + "\n";
    rows_ = static_cast<int>(rows.size());
    io::WriteOut(1, out);
  }
  void Clear() { io::WriteOut(1, Cleared()); }
  const io::Terminal& terminal() const { return terminal_; }

 private:
  std::string Cleared() {
    return rows_ == 0 ? "" : fmt::format("\x1b[{}A\x1b[J", std::exchange(rows_, 0));
  }

  const bool json_;
  const io::Terminal terminal_;
  int rows_ = 0;
  base::Time drawn_, said_ = io::Now();
};

class Drive {
 public:
  Drive(SweepStore& store, sweep::Study study, Place& place, bool local, bool json)
      : store_(store),
        study_(std::move(study)),
        place_(place),
        local_(local),
        json_(json),
        screen_(json) {
    for (const Trial& trial : study_.trials()) {
      if (!sweep::IsOver(trial)) queue_.push_back(trial.number);
    }
    source_ = local_ ? MetricSourceFrom(store_.Source()) : MetricSource{};
  }

  int Run();

 private:
  const SweepPlan& plan() const { return store_.plan(); }
  // It remembers where it runs by itself.
  std::string ResumeWords() const {
    const std::string& space = plan().name_space;
    return fmt::format("trainyard sweep resume {}{}", plan().name,
                       space == "default" ? "" : " -n " + space);
  }
  const Trial& TrialOf(int number) const { return study_.trials()[static_cast<size_t>(number)]; }
  size_t Running() const {
    return static_cast<size_t>(
        std::ranges::count_if(jobs_, [](const auto& entry) { return !entry.second->over(); }));
  }

  bool EndIsWished() const { return signal_ != 0 || stopped_; }
  Result<> CatchUp();
  Result<> StartMore();
  Result<> LookAtAll();
  Result<> Bear(base::Error error);
  Result<> Settle();
  Result<> ChooseSource(TrialJob& job, bool first);
  void TakeEnding(TrialJob& job);
  void Judge(const Trial& trial);
  void Show(base::Time now);
  void WaitAMoment();
  void StopAll(const std::string& why);
  int Interrupted();

  SweepStore& store_;
  sweep::Study study_;
  Place& place_;
  const bool local_;
  const bool json_;
  Screen screen_;
  io::Signals signals_;
  int signal_ = 0;
  bool stopped_ = false;  // by somebody, with `sweep stop`

  std::map<int, std::unique_ptr<TrialJob>> jobs_;  // of trials not decided, or not ended yet
  std::set<int> ended_;                            // those whose ending was taken
  std::optional<MetricSource> source_;             // of the metric; unknown until a trial has ended
  std::deque<int> queue_;                          // asked for and not started
  base::Time eventful_ = io::Now();                // when a trial was last decided
  std::optional<base::Time> away_since_;           // when a trial could first not be reached
  std::string hopeless_;                           // why it makes no sense to go on
  int hopeless_status_ = 1;
  int last_failure_ = 1;  // exit status
};

int Drive::Run() {
  signals_ = io::Signals({SIGINT, SIGTERM, SIGHUP});
  const base::Time began = io::Now();
  const bool resumed = !study_.trials().empty();

  bool begun = !resumed;
  while (!begun || (!(study_.AllOver() && Running() == 0) && hopeless_.empty())) {
    auto done = [&]() -> Result<> {
      if (!begun) TRY(CatchUp());
      begun = true;
      TRY(StartMore());
      TRY(LookAtAll());
      return Settle();
    }();
    if (!done) {
      screen_.Clear();
      const int status = Fail(std::move(done).error());
      StopAll("the sweep could not go on");
      if (!resumed && study_.trials().size() == 1 && jobs_.empty()) {
        store_.Remove();  // refused before anything was started
        return status;
      }
      fmt::print(stderr, "  try     {}\n", ResumeWords());
      return status;
    }
    Show(io::Now());
    if (hopeless_.empty()) WaitAMoment();
    if (EndIsWished()) return Interrupted();
  }
  screen_.Clear();
  if (!hopeless_.empty()) {
    StopAll("the sweep has given up");
    fmt::print(stderr, "trainyard: {}: {}\n", plan().name, hopeless_);
    return hopeless_status_;
  }
  const Trial* best = study_.Best();
  const std::optional<base::Duration> took =
      resumed ? std::nullopt : std::optional(io::Now() - began);
  io::WriteOut(json_ ? 2 : 1,
               EndText(plan(), store_, study_.trials(), best, took, screen_.terminal()));
  return best ? 0 : last_failure_;
}

// What was decided and not acted on before the sweep was killed.
Result<> Drive::CatchUp() {
  TRY(store_.WriteTable(study_.trials()));
  for (const Trial& trial : study_.trials()) {
    if (trial.state != State::kPruned) continue;
    auto found = place_.Find(plan().job_space, store_.JobName(trial.number));
    if (!found || !TRY((*found)->Look()).alive) continue;
    auto job = std::make_unique<TrialJob>(store_, trial, place_, local_);
    TRY(job->Start(false));  // that is, finds it
    TRY(job->Stop(fmt::format("sweep {}: {}", plan().name, trial.reason)));
    jobs_[trial.number] = std::move(job);
  }
  return {};
}

Result<> Drive::StartMore() {
  while (Running() < static_cast<size_t>(plan().parallel)) {
    const bool fresh = queue_.empty();
    if (fresh) {
      if (!study_.CanAsk()) return {};
      const Trial& trial = study_.Ask();
      TRY(store_.NoteAsked(trial));
      queue_.push_back(trial.number);
    }
    const int number = queue_.front();
    auto job = std::make_unique<TrialJob>(store_, TrialOf(number), place_, local_);
    if (auto started = job->Start(fresh); !started) {
      auto error = std::move(started).error().Context(fmt::format("trial {}", number));
      if (number == 0 && fresh) return std::unexpected(std::move(error));  // it never was there
      // Not fresh any more: it may have been made before the cluster went away.
      return Bear(std::move(error));
    }
    queue_.pop_front();
    jobs_[number] = std::move(job);
  }
  return {};
}

// A cluster may be away for a while.
Result<> Drive::Bear(base::Error error) {
  const bool away = error.kind() == base::ErrorKind::kUnavailable;
  if (!away_since_) away_since_ = io::Now();
  if (away && io::Now() - *away_since_ <= kLongestAway) return {};
  return std::unexpected(std::move(error));
}

Result<> Drive::LookAtAll() {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const int number = it->first;
    TrialJob& job = *it->second;
    if (auto looked = job.Look(); !looked) {
      TRY(Bear(std::move(looked).error().Context(fmt::format("trial {}", number))));
      ++it;
      continue;
    }
    away_since_.reset();
    TRY(ChooseSource(job, it == jobs_.begin()));
    for (double value : job.metric().Take()) study_.Report(number, value);
    if (job.over() && !ended_.contains(number) && (source_ || !job.metric().Found())) {
      ended_.insert(number);
      TakeEnding(job);
    }
    const bool gone = job.over() && sweep::IsOver(TrialOf(number));
    it = gone ? jobs_.erase(it) : std::next(it);
  }
  return {};
}

// All trials of a sweep take the metric from the same source, so that a report does not depend on
// whether a log line or an event file was written first. The first trial that has ended decides;
// until then reports wait, which delays no decision: pruning needs a complete trial to begin with.
Result<> Drive::ChooseSource(TrialJob& job, bool first) {
  TrialMetric& metric = job.metric();
  const auto found = job.over() ? metric.Found() : std::nullopt;
  if (!source_ && found && (first || plan().settings.async)) {
    TRY(store_.NoteSource(Text(*found)));
    source_ = found;
  }
  if (!source_) return {};
  metric.Use(*source_);
  // A trial that has nothing there is read as if it were alone.
  if (found && !metric.last()) metric.Use(*found);
  return {};
}

void Drive::TakeEnding(TrialJob& job) {
  const int number = job.number();
  if (sweep::IsOver(TrialOf(number))) return;  // pruned, and now it has stopped
  if (job.succeeded()) {
    if (job.metric().last()) return study_.End(number, {.value = job.metric().last()});
    const TrialMetric& metric = job.metric();
    const bool several = metric.meanings().size() > 1;
    const std::vector<std::string> names(
        several ? metric.meanings().begin() : metric.names().begin(),
        several ? metric.meanings().end() : metric.names().end());
    std::string found = names.empty() ? "it reported no metric at all"
                        : several     ? "it could be " + base::Join(names, " or ")
                                      : "it reported " + base::Join(names, ", ");
    return study_.End(number, {.failed = true,
                               .reason = fmt::format("no metric {}: {}; name one with --metric",
                                                     plan().metric, base::OneLine(found, 300))});
  }
  last_failure_ = std::max(1, ExitStatus(job.status()));
  const std::string cause = job.Cause();
  if (!job.metric().refusal().empty()) {
    for (const sweep::Parameter& p : plan().settings.space) {
      if (!cause.contains("--" + p.name) && !cause.contains("'" + p.name + "'")) continue;
      hopeless_ = fmt::format(
          "the script does not take --{}: {}; let it take the argument, or leave it out of the "
          "sweep",
          p.name, cause);
      hopeless_status_ = last_failure_;
    }
  }
  study_.End(number, {.failed = true, .reason = cause});
}

// What was decided: first into the log, then acted on.
Result<> Drive::Settle() {
  const std::vector<int> decided = study_.TakeDecided();
  if (!decided.empty()) eventful_ = io::Now();
  for (int number : decided) {
    const Trial& trial = TrialOf(number);
    TRY(store_.NoteDecided(trial));
    screen_.Line(json_ ? base::CompactJson(TrialJson(plan(), trial)) : TrialText(plan(), trial));
    const auto job = jobs_.find(number);
    if (job != jobs_.end() && !job->second->over()) {
      TRY_AS(fmt::format("stop trial {}", number),
             job->second->Stop(fmt::format("sweep {}: {}", plan().name, trial.reason)));
    } else if (job != jobs_.end()) {
      jobs_.erase(job);
    }
    Judge(trial);
  }
  if (!decided.empty()) TRY(store_.WriteTable(study_.trials()));
  return {};
}

// When the first trials all fail, and alike, so would the rest.
void Drive::Judge(const Trial& trial) {
  if (trial.state != State::kFailed || !hopeless_.empty()) return;
  // One that diverged says where not to search, not that the script is broken.
  if (trial.value && !std::isfinite(*trial.value)) return;
  size_t alike = 0;
  for (const Trial& other : study_.trials()) {
    if (other.state == State::kComplete || other.state == State::kPruned) return;
    if (other.state == State::kFailed && Pattern(other.reason) == Pattern(trial.reason)) ++alike;
  }
  if (alike < kAlike || study_.AllOver()) return;
  hopeless_ = fmt::format("the first {} trials failed alike, the others were not tried: {}", alike,
                          trial.reason);
  hopeless_status_ = last_failure_;
}

void Drive::Show(base::Time now) {
  std::vector<std::string> rows;
  for (const auto& [number, job] : jobs_) {
    if (job->over() || rows.size() == 8) continue;
    const auto latest = job->metric().glimpse();
    rows.push_back(fmt::format("  trial {:<3} running  {}  {}", number,
                               latest ? fmt::format("{} {:.6g}", plan().metric, *latest)
                                      : plan().metric + " -",
                               ValuesText(plan().settings.space, TrialOf(number).point)));
  }
  rows.push_back(
      "  " +
      BoardText(plan(), study_.trials(), static_cast<int>(Running()), screen_.terminal().unicode) +
      (away_since_ ? ", waiting for the cluster" : ""));
  screen_.Board(rows, now);
}

void Drive::WaitAMoment() {
  pollfd fd{signals_.fd(), POLLIN, 0};
  const bool quiet = io::Now() - eventful_ > kQuiet;
  if (!stopped_) stopped_ = store_.IsAskedToStop();
  if (stopped_) eventful_ = io::Now();
  if (poll(&fd, 1, quiet ? kSeldomMs : kLookMs) <= 0) return;
  for (int signal : signals_.Take()) signal_ = signal;
}

// Until nothing of them runs; a second signal ends the waiting.
void Drive::StopAll(const std::string& why) {
  signal_ = 0;
  for (auto& [number, job] : jobs_) {
    if (job->over()) continue;
    if (auto stopped = job->Stop(fmt::format("sweep {}: {}", plan().name, why)); !stopped)
      fmt::print(stderr, "trainyard: stop {}: {}\n", job->name(), stopped.error().text());
  }
  while (Running() > 0 && signal_ == 0) {
    // One that cannot be reached is left alone.
    std::erase_if(jobs_, [](auto& entry) { return !entry.second->Look(); });
    WaitAMoment();
  }
}

int Drive::Interrupted() {
  const int signal = signal_;
  screen_.Clear();
  screen_.Line(fmt::format("stopping {} running trials: Ctrl-C again to leave them", Running()));
  StopAll(signal == 0 ? "stopped" : "interrupted");
  const auto over = std::ranges::count_if(study_.trials(), sweep::IsOver);
  fmt::print(stderr, "trainyard: {} was {} after {} of {} trials: {}\n", plan().name,
             signal == 0 ? "stopped" : "interrupted", over, plan().settings.trials, ResumeWords());
  return signal == 0 ? kExitStopped : 128 + signal;
}

}  // namespace

int DriveSweep(SweepStore& store, sweep::Study study, Place& place, bool local, bool json) {
  return Drive(store, std::move(study), place, local, json).Run();
}

}  // namespace cli
