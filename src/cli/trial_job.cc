#include "cli/trial_job.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "backend/local/job_dir.h"
#include "base/strings.h"
#include "cli/bundle.h"
#include "cli/refuse.h"
#include "cli/sweep_manifest.h"
#include "cli/sweep_plan.h"
#include "cli/watch.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/process.h"

namespace cli {
namespace {

using base::Result;

constexpr base::Duration kLongestStart = std::chrono::minutes(5);
constexpr size_t kMostWords = 1 << 20;
constexpr int kMostRevivals = 3;

// The last line that a program said, without our own name before it.
std::string LastWords(const std::string& output) {
  std::string_view text = base::Trim(output);
  if (const size_t line = text.rfind('\n'); line != text.npos) text.remove_prefix(line + 1);
  if (text.starts_with("trainyard: ")) text.remove_prefix(11);
  return base::OneLine(text, 300);
}

// A job that is being made cannot be read for a moment.
Result<Standing> LookSoon(PlacedJob& job) {
  for (int tries = 0;; ++tries) {
    auto standing = job.Look();
    if (standing || tries == 30) return standing;
    poll(nullptr, 0, 100);
  }
}

// How often it was begun.
int64_t LifeIn(const std::string& dir) {
  const auto text = io::ReadFile(dir + "/life");
  return text ? base::ParseInt(base::Trim(*text)).value_or(1) : 1;
}

}  // namespace

std::string OutputOnCluster(const SweepPlan& plan, const std::string& folder, int64_t life) {
  if (plan.output.empty()) return "";
  const auto wish = ParseOutput(plan.output);
  std::string out = plan.output;
  while (out.ends_with('/')) out.pop_back();
  if (wish && wish->kind == OutputWish::Kind::kClaim) {
    out += "/" + plan.name + "/" + folder;
    return life > 1 ? fmt::format("{}.{}", out, life) : out;
  }
  // Of an object store `run` itself makes a folder for each job.
  const bool url = wish && wish->kind == OutputWish::Kind::kUrl;
  return url && life > 1 ? fmt::format("{}/{}", out, life) : out;
}

TrialJob::TrialJob(const SweepStore& store, const sweep::Trial& trial, Place& place, bool local)
    : store_(store),
      trial_(trial),
      number_(trial.number),
      name_(store.JobName(trial.number)),
      dir_(store.TrialDir(trial)),
      place_(place),
      local_(local),
      metric_(store.plan().metric) {}

// Every role gets the parameters as variables, through the env file.
Result<> TrialJob::Prepare() {
  const SweepPlan& plan = store_.plan();
  const sweep::Space& space = plan.settings.space;
  TRY(io::MakeDirs(dir_));
  std::string env = plan.env;
  if (!env.empty() && !env.ends_with('\n')) env += '\n';
  for (const auto& [parameter, text] : sweep::Texts(space, trial_.point))
    env += fmt::format("{}={}\n", sweep::VariableOf(*parameter), text);
  env += "TRAINYARD_PARAMS=" + base::CompactJson(sweep::ToJson(space, trial_.point)) + "\n";
  env += "TRAINYARD_SWEEP=" + plan.name + "\n";
  TRY(io::WriteFile(dir_ + "/env", env, 0600));
  if (!plan.manifest.empty()) TRY(io::WriteFile(dir_ + "/job.yaml", TRY(ManifestOf(plan, trial_))));
  return {};
}

Result<> TrialJob::RunProgram(const std::vector<std::string>& words) {
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
  if (size <= 0) return base::FromErrno("find this program", errno);
  io::Spawn spawn{.argv = {std::string(self, static_cast<size_t>(size))},
                  .env = io::Environment(),
                  .directory = store_.plan().directory};
  spawn.argv.insert(spawn.argv.end(), words.begin(), words.end());
  const io::Ended ended = TRY(io::RunToItsEnd(std::move(spawn), kLongestStart, kMostWords));
  if (ended.status == kExitLost)
    return std::unexpected(base::Error(base::ErrorKind::kUnavailable, LastWords(ended.output)));
  if (ended.status != 0) return base::Invalid(LastWords(ended.output));
  return {};
}

// As `trainyard resume` does it, from its checkpoint.
Result<> TrialJob::Revive() {
  std::vector<std::string> words = {"resume", "--detach", "--namespace=" + store_.plan().job_space,
                                    name_};
  if (!store_.plan().on.empty()) words.push_back("--on=" + store_.plan().on);
  return RunProgram(words);
}

// The job that an earlier process has started, if there is one that can go on.
Result<bool> TrialJob::TakeUp() {
  auto found = place_.Find(store_.plan().job_space, name_);
  if (!found && found.error().kind() == base::ErrorKind::kNotFound) return false;
  if (!found) return std::unexpected(found.error());
  const Standing standing = TRY(LookSoon(**found));
  const auto& verdict = standing.job.status.verdict;
  if (verdict && verdict->result == "stopped") {
    TRY(BeginAgain(**found));
    return false;
  }
  job_ = std::move(*found);
  if (!standing.alive && !api::IsTerminal(standing.job.status)) TRY(Revive());
  return true;
}

// The number of its life is on disk before the job is gone, by which alone it could be known.
Result<> TrialJob::BeginAgain(PlacedJob& stopped) {
  TRY(stopped.WaitUntilOver(io::Now() + kLongestStart));
  TRY(io::MakeDirs(dir_));
  TRY(io::ReplaceFileDurably(dir_ + "/life", std::to_string(LifeIn(dir_) + 1)));
  TRY(stopped.Delete(true));
  return {};
}

Result<> TrialJob::Start(bool fresh) {
  const SweepPlan& plan = store_.plan();
  if (!fresh && TRY(TakeUp())) return {};
  TRY(Prepare());
  // What an attempt that was stopped has left is no part of this one.
  if (local_ && plan.output.empty()) TRY(io::RemoveTree(dir_ + "/output"));
  std::vector<std::string> words = RunWords(plan, trial_);
  std::vector<std::string> own = {"--name=" + name_, "--namespace=" + plan.job_space, "--detach",
                                  "--json", "--env-file=" + dir_ + "/env"};
  if (!plan.manifest.empty()) own.push_back("--file=" + dir_ + "/job.yaml");
  if (local_) {
    const std::string output = plan.output.empty() ? dir_ : plan.output + "/" + io::BaseName(dir_);
    own.push_back("--output=" + output + "/output");
  } else if (const std::string output = OutputOnCluster(plan, io::BaseName(dir_), LifeIn(dir_));
             !output.empty()) {
    own.push_back("--output=" + output);
  }
  words.insert(words.begin() + 1, own.begin(), own.end());
  auto ran = RunProgram(words);
  if (!ran && fresh) return ran;
  auto found = place_.Find(plan.job_space, name_);
  if (!found) return ran ? std::unexpected(found.error()) : ran;
  // Refused since a sweep that was killed had just begun to start it: then it is started.
  if (!ran && !LookSoon(**found)) return ran;
  job_ = std::move(*found);
  return {};
}

void TrialJob::Link(const std::string& name, const std::string& target) {
  const std::string path = dir_ + "/" + name;
  if (!io::Exists(path)) (void)!symlink(target.c_str(), path.c_str());
}

void TrialJob::ReadLogs() {
  if (!local_) {
    if (!source_) return;
    if (auto chunks = source_->Read()) {
      for (const TimedChunk& chunk : *chunks) metric_.FeedLog(chunk.bytes);
    }
    return;
  }
  for (std::string bytes; !(bytes = tail_->ReadNew()).empty();) metric_.FeedLog(bytes);
  size_t index = 0;
  for (auto* reader : {&*events_, &*output_events_}) {
    reader->Poll(io::Now());
    metric_.ReadEvents(index++, *reader);
  }
}

Result<> TrialJob::Look() {
  if (over_) return {};
  TRY(TryStop());
  // Before its words are read: what is over then has said them all.
  Standing standing = TRY(job_->Look());
  // Its last word may have come between the two things that were looked at.
  if (local_ && !standing.alive && !api::IsTerminal(standing.job.status))
    standing = TRY(job_->Look());
  status_ = standing.job.status;
  const api::ReplicaId leader = Leader(standing.job.spec);
  if (local_ && !tail_) {
    const backend::local::JobDir dir = backend::local::Locate(store_.plan().job_space, name_);
    tail_.emplace(dir.LogFile(leader));
    events_.emplace(dir.File("tensorboard"));
    const auto run = dir.LoadRun();
    output_events_.emplace(run ? run->output : dir.File("output"));
    Link("tensorboard", dir.File("tensorboard"));
    Link("logs", dir.File("logs"));
  } else if (!local_ && !source_) {
    if (auto source = job_->OpenLogs({.replicas = {leader}, .follow = true}))
      source_ = std::move(*source);
  }
  ReadLogs();
  over_ = api::IsTerminal(status_) && !standing.alive && (local_ || !source_ || source_->ended());
  const bool orphaned = local_ && !standing.alive && !api::IsTerminal(status_);
  if (orphaned && stop_.empty()) {
    if (++revivals_ > kMostRevivals)
      return base::Invalid("its supervisor was killed again and again");
    return Revive();
  }
  return {};
}

Result<> TrialJob::Stop(const std::string& why) {
  stop_ = why;
  return TryStop();
}

// One that is just ending may not answer; the next look tries again.
Result<> TrialJob::TryStop() {
  if (stop_.empty() || !job_) return {};
  if (!api::IsTerminal(TRY(job_->Look()).job.status)) {
    auto stopped = job_->Stop(stop_);
    if (!stopped && stopped.error().kind() != base::ErrorKind::kUnavailable) return stopped;
    if (!stopped) return {};
  }
  stop_.clear();
  return {};
}

std::string TrialJob::Cause() const {
  if (!metric_.refusal().empty()) return metric_.refusal();
  std::string cause = status_.verdict ? status_.verdict->cause : "it ended without a verdict";
  if (!status_.incidents.empty() && !status_.incidents.back().line.empty() &&
      !cause.contains(status_.incidents.back().line)) {
    cause += ": " + status_.incidents.back().line;
  }
  return base::OneLine(base::CleanUtf8(cause), 300);
}

}  // namespace cli
