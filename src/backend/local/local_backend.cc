#include "backend/local/local_backend.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <set>
#include <unordered_set>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/kept_code.h"
#include "base/env_file.h"
#include "base/strings.h"
#include "core/dialect.h"
#include "io/clock.h"
#include "io/process.h"
#include "job_python.h"

namespace backend::local {
namespace {

using api::ReplicaId;
using base::Result;

constexpr size_t kTailBytes = 32 << 10;
constexpr size_t kTailLines = 80;
// Between SIGTERM and SIGKILL, as Kubernetes gives a pod that does not say.
constexpr int64_t kGraceSeconds = 30;

std::string Incarnate(ReplicaId id, int32_t attempt) {
  return fmt::format("{}.{}", api::ToString(id), attempt);
}

// "ended status=9 when=17 …" -> {"status": 9, "when": 17, …}
std::map<std::string, int64_t> Fields(std::string_view line) {
  std::map<std::string, int64_t> out;
  for (std::string_view word : base::Split(base::Trim(line), ' ')) {
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    out[std::string(word.substr(0, equals))] = base::ParseInt(word.substr(equals + 1)).value_or(0);
  }
  return out;
}

// Whether what changed is something that deeds or people rely on: restarts, completions, the end.
// The rest (who was seen, progress) is found again by looking, and syncing it would cost every
// start and every step some milliseconds.
bool RestsOnIt(const api::JobStatus& before, const api::JobStatus& after) {
  return before.attempt != after.attempt || before.restarts != after.restarts ||
         before.disruptions != after.disruptions || before.completed != after.completed ||
         api::IsTerminal(before) != api::IsTerminal(after);
}

// What a guard that has not ended was started with: "started when=17", then "cgroup DIR" lines.
std::string StartedRecord(base::Time when, const std::vector<std::string>& cgroups) {
  std::string text = fmt::format("started when={}\n", when.time_since_epoch().count());
  for (const std::string& dir : cgroups) text += "cgroup " + dir + "\n";
  return text;
}

std::vector<std::string> CgroupsIn(std::string_view record) {
  std::vector<std::string> out;
  for (std::string_view line : base::Split(record, '\n')) {
    if (line.starts_with("cgroup ")) out.emplace_back(line.substr(7));
  }
  return out;
}

// A replica costs us two descriptors, and most systems allow 1024 until one asks for more. Returns
// what it was before, for the replicas, or 0 when nothing was changed.
uint64_t AllowDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return 0;
  const uint64_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? before : 0;
}

int64_t GraceMs(const base::Json& pod_template) {
  const base::Json* spec = base::Find(pod_template, "spec");
  const int64_t seconds =
      spec ? base::IntOr(*spec, "terminationGracePeriodSeconds", kGraceSeconds) : kGraceSeconds;
  return 1000 * std::clamp<int64_t>(seconds, 0, 86'400);
}

}  // namespace

void EndStrays(const JobDir& dir) {
  const std::string mark = "TRAINYARD_CHECKPOINT_DIR=" + dir.File("checkpoints");
  for (int tries = 0; tries < 200; ++tries) {
    const std::vector<pid_t> strays = io::ProcessesWith(mark);
    if (strays.empty()) return;
    for (pid_t pid : strays) kill(pid, SIGKILL);
    poll(nullptr, 0, 10);
  }
}

Result<std::unique_ptr<LocalBackend>> LocalBackend::Open(Claim claim, const api::Job& job) {
  std::unique_ptr<LocalBackend> out(new LocalBackend(std::move(claim)));
  out->users_descriptors_ = AllowDescriptors();
  // Orphans of a killed guard come to us.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  out->guard_program_ = TRY(io::HelperProgram("trainyard-guard"));
  // Missed now, while the job can still be refused.
  if (job.extensions.elastic) TRY(io::HelperProgram("trainyard-master"));
  out->run_ = TRY(out->dir_.LoadRun());
  auto environment = out->dir_.LoadEnvironment();
  out->environment_ = environment ? *std::move(environment) : io::Environment();
  if (io::Exists(out->dir_.File("env"))) {
    for (auto& [name, value] : TRY(base::ParseEnvFile(TRY(io::ReadFile(out->dir_.File("env")))))) {
      out->env_file_.emplace_back(name, value);
    }
  }
  for (const std::string& made :
       {out->run_.output, out->dir_.File("checkpoints"), out->dir_.File("tensorboard"),
        out->dir_.File("logs"), out->dir_.File("endings")}) {
    TRY(io::MakeDirs(made));
  }
  if (core::UsesClient(job)) {
    TRY(io::MakeDirs(out->dir_.File("python")));
    TRY(io::WriteFile(out->dir_.File("python/sitecustomize.py"), job_python::kSitecustomizePy));
  }
  out->FindEarlier(job);
  TRY(out->LeaseFor(job));
  return out;
}

LocalBackend::~LocalBackend() {
  for (auto& [key, incarnation] : incarnations_) {
    if (incarnation.guard) incarnation.control.reset();  // the guard kills all and ends
  }
  for (auto& [key, incarnation] : incarnations_) {
    if (incarnation.guard) waitpid(incarnation.guard, nullptr, 0);
  }
}

Result<> LocalBackend::LeaseFor(const api::Job& job) {
  TRY(LeaseGpus(job));
  return LeasePorts(job);
}

Result<> LocalBackend::LeaseGpus(const api::Job& job) {
  std::optional<std::string> inherited = ValueIn(environment_, kVisibleGpus);
  for (const auto& [name, value] : env_file_) {
    if (name == kVisibleGpus) inherited = value;
  }
  const GpuShares shares = TRY(gpu_leases_.ShareOut(job, GpusIn(inherited)));
  gpus_ = shares.visible;
  if (!shares.notice.empty()) {
    notices_.push_back(shares.notice);
    Append({{true, "GpusNotUsed", shares.notice}});
  }
  return {};
}

Result<> LocalBackend::LeasePorts(const api::Job& job) {
  const std::vector<ReplicaId> all = WithPorts(job);
  if (ports_.empty()) {
    const std::vector<int32_t> ports = TRY(leases_.Lease(all.size(), run_.first_port, run_.ports));
    for (size_t i = 0; i < all.size(); ++i) ports_[all[i]] = ports[i];
  } else {
    std::vector<ReplicaId> fresh;
    for (ReplicaId id : all) {
      if (!ports_.contains(id)) fresh.push_back(id);
    }
    if (fresh.empty()) return {};
    const std::vector<int32_t> added = TRY(leases_.LeaseMore(fresh.size()));
    for (size_t i = 0; i < fresh.size(); ++i) ports_[fresh[i]] = added[i];
  }
  if (job.extensions.elastic && !master_port_leased_) {
    run_.master_port = TRY(leases_.LeaseOne(run_.master_port));
    master_port_leased_ = true;
  }
  run_.ports.clear();
  for (ReplicaId id : all) run_.ports.push_back(ports_[id]);
  return dir_.SaveRun(run_);
}

// Incarnations of earlier supervisors. We hold the lock and guards inherit it, so no guard lives
// any more. One without an ending was lost together with its guard: somebody killed all of ours at
// one stroke, and what the program had started may still be there.
void LocalBackend::FindEarlier(const api::Job& job) {
  bool lost = false;
  for (const std::string& name : io::ListDir(dir_.File("endings"))) {
    const size_t dot = name.rfind('.');
    const auto id = api::ReplicaIdFrom(name.substr(0, dot));
    const auto attempt =
        dot == std::string::npos ? std::nullopt : base::ParseInt(name.substr(dot + 1));
    if (!id || !attempt) continue;
    Incarnation incarnation{.id = *id, .attempt = static_cast<int32_t>(*attempt)};
    const std::string line = io::ReadFile(dir_.File("endings/" + name)).value_or("");
    if (line.starts_with("ended")) {
      if (const auto role = job.spec.replicas.find(id->role); role != job.spec.replicas.end()) {
        incarnation.limits = LimitsOf(role->second.pod_template).value_or(Limits());
      }
      End(incarnation, ReadEnding(line, incarnation));
    } else {
      lost = true;
      Release(CgroupsIn(line));
      incarnation.ending = core::Ending{.code = 137,
                                        .when = base::Time(base::Duration(Fields(line)["when"])),
                                        .disruption = "its supervisor was killed"};
    }
    incarnations_.emplace(Key{*id, incarnation.attempt}, std::move(incarnation));
  }
  if (lost) EndStrays(dir_);
}

core::Observed LocalBackend::Observe(const api::Job&) {
  core::Observed out;
  for (const auto& [key, incarnation] : incarnations_) {
    core::ReplicaState state{.id = incarnation.id,
                             .incarnation = Incarnate(incarnation.id, incarnation.attempt),
                             .attempt = incarnation.attempt};
    if (incarnation.ending) {
      state.phase = incarnation.ending->code == 0 ? core::Phase::kSucceeded : core::Phase::kFailed;
      state.ending = incarnation.ending;
    } else if (incarnation.program) {
      state.phase = core::Phase::kRunning;
    }
    if (incarnation.started != base::Time()) state.started = incarnation.started;
    state.deleting = incarnation.stop_sent && !incarnation.ending;
    out.replicas.push_back(std::move(state));
  }
  out.progress = progress_;
  return out;
}

Result<> LocalBackend::Publish(const api::Job& job, const api::JobStatus& status,
                               const std::vector<core::Event>& events) {
  if (status != job.status) {
    TRY_AS("publish the status", dir_.SaveStatus(status, RestsOnIt(job.status, status)));
  }
  Append(events);
  return {};
}

void LocalBackend::Append(const std::vector<core::Event>& events) const {
  std::string lines;
  const std::string now = base::FormatTimeMicro(io::Now());
  for (const core::Event& event : events) {
    lines += base::CompactJson(base::JsonObject{{"time", now},
                                                {"type", event.warning ? "Warning" : "Normal"},
                                                {"reason", event.reason},
                                                {"message", event.message}}) +
             "\n";
  }
  if (!lines.empty()) {
    base::IgnoreError(io::AppendFile(dir_.File("events.jsonl"), lines),
                      "events inform, nothing rests on them; a full disk shows at the status");
  }
}

Result<> LocalBackend::Perform(const api::Job& job, const core::Action& action) {
  const auto find = [&](ReplicaId id, const std::string& name) -> Incarnation* {
    for (auto& [key, incarnation] : incarnations_) {
      if (incarnation.id == id && Incarnate(id, incarnation.attempt) == name) return &incarnation;
    }
    return nullptr;
  };
  if (const auto* start = std::get_if<core::Start>(&action)) {
    return StartReplica(job, start->id, start->attempt);
  }
  if (const auto* stop = std::get_if<core::Stop>(&action)) {
    if (Incarnation* it = find(stop->id, stop->incarnation)) StopReplica(*it, stop->graceful);
  }
  if (const auto* remove = std::get_if<core::Remove>(&action)) {
    Incarnation* it = find(remove->id, remove->incarnation);
    if (it && it->ending) {
      unlink(dir_.EndingFile(it->id, it->attempt).c_str());
      incarnations_.erase(Key{it->id, it->attempt});
    }
  }
  return {};  // DeleteJob: whoever lists jobs drops those past their time
}

Result<> LocalBackend::StartReplica(const api::Job& job, ReplicaId id, int32_t attempt) {
  const Key key{id, attempt};
  if (incarnations_.contains(key)) return {};
  Incarnation incarnation{.id = id, .attempt = attempt, .started = io::Now()};
  std::string script;
  if (!run_.script.empty()) script = TRY(ScriptToRun(run_.script, dir_.File("code")));
  const Command command = TRY_AS(
      api::Spoken(id),
      CommandOf({job, dir_, run_, ports_, env_file_, gpus_, environment_, script}, id, attempt));

  const std::string log_path = dir_.LogFile(id);
  const io::Fd log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid()) return base::FromErrno("open " + log_path, errno);
  const std::string mark = fmt::format("{}{} attempt {} started {} ---\n", kMark, api::Spoken(id),
                                       attempt, base::FormatTime(incarnation.started));
  if (write(log.get(), mark.data(), mark.size()) < 0)
    return base::FromErrno("write " + log_path, errno);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return base::FromErrno("socketpair", errno);
  incarnation.control = io::Fd(pair[0]);
  const io::Fd guard_end(pair[1]);

  const base::Json& pod_template = job.spec.replicas.at(id.role).pod_template;
  incarnation.grace_ms = GraceMs(pod_template);
  incarnation.limits = TRY(LimitsOf(pod_template));
  // A name for each incarnation: the guard of the one before may still be removing its own.
  const Enforcement enforcement = enforcer_.Enforce(
      incarnation.limits,
      fmt::format("trainyard-{}-{}-{}", job.metadata.name, Incarnate(id, attempt), getpid()));
  if (!enforcement.not_enforced.empty()) {
    notices_.push_back(api::Spoken(id) + " runs without " + enforcement.not_enforced);
    Append({{true, "LimitNotEnforced", notices_.back()}});
  }
  incarnation.limits_by = enforcement.by;
  incarnation.cgroups = enforcement.cgroups;
  if (auto recorded = io::WriteFile(dir_.EndingFile(id, attempt),
                                    StartedRecord(incarnation.started, enforcement.cgroups));
      !recorded) {
    Release(enforcement.cgroups);
    return recorded;
  }
  io::Spawn spawn{.env = FullEnvironment(environment_, command.added),
                  .output = log.get(),
                  .extra = {guard_end.get(), lock_.fd()}};
  // The guard enters the directory and reports when it cannot: then the job ends with that cause.
  spawn.argv = {guard_program_,
                "--record",
                dir_.EndingFile(id, attempt),
                "--clock-offset",
                std::to_string(io::ClockOffset().count()),
                "--directory",
                command.directory};
  for (const std::string& cgroup : enforcement.cgroups) {
    spawn.argv.insert(spawn.argv.end(), {"--cgroup", cgroup});
  }
  if (enforcement.poll_memory) {
    spawn.argv.insert(
        spawn.argv.end(),
        {"--memory-limit", std::to_string(incarnation.limits.memory_bytes), "--poll"});
  }
  if (users_descriptors_) {
    spawn.argv.insert(spawn.argv.end(), {"--descriptors", std::to_string(users_descriptors_)});
  }
  for (const Mount& mount : command.mounts) {
    spawn.argv.insert(spawn.argv.end(), {"--mount", mount.from, mount.to});
  }
  spawn.argv.push_back("--");
  spawn.argv.insert(spawn.argv.end(), command.argv.begin(), command.argv.end());
  auto guard = io::Start(spawn);
  if (!guard) {
    Release(enforcement.cgroups);
    if (guard.error().kind() != base::ErrorKind::kInvalid)
      return std::unexpected(std::move(guard).error().Context("start " + api::Spoken(id)));
    // The same arguments and environment fail every time, so the job ends with that cause.
    start_failed_ = true;
    incarnation.control.reset();
    End(incarnation, {.code = 126, .when = io::Now(), .start_error = guard.error().text()});
  } else {
    incarnation.guard = *guard;
  }
  incarnations_.emplace(key, std::move(incarnation));
  return {};
}

void LocalBackend::StopReplica(Incarnation& incarnation, bool graceful) {
  if (!incarnation.guard || incarnation.kill_sent || (graceful && incarnation.stop_sent)) return;
  const std::string word = graceful ? fmt::format("T {}\n", incarnation.grace_ms) : "K\n";
  send(incarnation.control.get(), word.data(), word.size(), MSG_NOSIGNAL);
  incarnation.stop_sent = true;
  incarnation.kill_sent |= !graceful;
}

std::vector<pollfd> LocalBackend::PollSet() const {
  std::vector<pollfd> out;
  for (const auto& [key, incarnation] : incarnations_) {
    if (incarnation.guard) out.push_back({incarnation.control.get(), POLLIN, 0});
  }
  return out;
}

void LocalBackend::Collect() {
  for (auto& [key, incarnation] : incarnations_) {
    if (!incarnation.guard) continue;
    while (true) {
      char buffer[1024];
      const ssize_t size = recv(incarnation.control.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (size <= 0) {
        GuardGone(incarnation);
        break;
      }
      incarnation.heard.append(buffer, static_cast<size_t>(size));
      for (size_t end; (end = incarnation.heard.find('\n')) != std::string::npos;) {
        Hear(incarnation, incarnation.heard.substr(0, end));
        incarnation.heard.erase(0, end + 1);
      }
    }
  }
}

void LocalBackend::Hear(Incarnation& incarnation, const std::string& line) {
  if (line.starts_with("started ")) {
    incarnation.program = static_cast<pid_t>(base::ParseInt(line.substr(8)).value_or(0));
  } else if (line.starts_with("failed ")) {
    End(incarnation, {.code = 127, .when = io::Now(), .start_error = line.substr(7)});
  } else if (line.starts_with("ended ")) {
    End(incarnation, ReadEnding(line, incarnation));
  }
}

// Words first, then silence: a guard that goes without a word was killed, and its keeper has ended
// what it left; if that was killed too, all of it has come to us.
void LocalBackend::GuardGone(Incarnation& incarnation) {
  const pid_t guard = std::exchange(incarnation.guard, 0);
  incarnation.control.reset();
  int status = 0;
  waitpid(guard, &status, 0);
  if (WIFSIGNALED(status)) {
    KillOrphans();
    Release(incarnation.cgroups);
  }
  if (incarnation.ending) return;
  End(incarnation,
      {.code = 137, .signal = SIGKILL, .when = io::Now(), .disruption = "its guard was killed"});
}

void LocalBackend::End(Incarnation& incarnation, core::Ending ending) {
  if (ending.code != 0) ending.last_lines = LastLines(incarnation.id);
  if (ending.signal == SIGABRT) ending.hang = incarnation.aborted;
  incarnation.ending = std::move(ending);
}

// Children of ours that are no guards came from a killed guard. Killed until none is left: what
// they started comes to us when they die.
void LocalBackend::KillOrphans() {
  std::unordered_set<pid_t> guards = {spared_, enforcer_.leaf_guard()};
  for (const auto& [key, incarnation] : incarnations_) {
    if (incarnation.guard) guards.insert(incarnation.guard);
  }
  while (true) {
    const std::vector<io::ProcessState> all = io::ListProcesses();
    bool any = false;
    for (const io::ProcessState& process : all) {
      if (process.parent != getpid() || guards.contains(process.pid)) continue;
      any = true;
      for (const io::ProcessState& below : io::DescendantsOf(process.pid, all))
        kill(below.pid, SIGKILL);
      kill(process.pid, SIGKILL);
      waitpid(process.pid, nullptr, 0);
    }
    if (!any) return;
  }
}

core::Ending LocalBackend::ReadEnding(const std::string& line,
                                      const Incarnation& incarnation) const {
  std::map<std::string, int64_t> fields = Fields(line);
  const int status = static_cast<int>(fields["status"]);
  core::Ending ending;
  ending.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ending.code = ending.signal ? 128 + ending.signal : WEXITSTATUS(status);
  ending.when = base::Time(base::Duration(fields["when"]));
  ending.stopped = fields["stopped"] != 0;
  if (fields["lost"]) {
    ending.disruption = fields["lost"] == 2 ? "its guard was killed" : "its supervisor was killed";
  }
  if (fields["oom"] && ending.code != 0) {
    ending.memory_limit_by = incarnation.limits_by.empty() ? "the kernel" : incarnation.limits_by;
    ending.memory_limit = incarnation.limits.memory_bytes;
    ending.memory_peak = fields["peak"];
  }
  return ending;
}

std::vector<std::string> LocalBackend::LastLines(ReplicaId id) const {
  auto tail = io::ReadTail(dir_.LogFile(id), kTailBytes);
  if (!tail) return {};
  std::vector<std::string> out;
  for (std::string_view line : base::Split(*tail, '\n')) {
    if (line.starts_with(kMark)) {
      out.clear();  // an earlier attempt's
      continue;
    }
    // Of a line rewritten by carriage returns, the last state is what a person saw.
    line = base::Trim(line.substr(0, line.find_last_not_of('\r') + 1)).empty() ? "" : line;
    if (const size_t cr = line.find_last_of('\r');
        cr != std::string_view::npos && cr + 1 < line.size()) {
      line.remove_prefix(cr + 1);
    }
    if (!line.empty()) out.emplace_back(line);
  }
  if (out.size() > kTailLines) out.erase(out.begin(), out.end() - kTailLines);
  return out;
}

void LocalBackend::AbortTraining(const std::string& words) {
  for (auto& [key, incarnation] : incarnations_) {
    const bool trains =
        incarnation.id.role != api::Role::kPs && incarnation.id.role != api::Role::kEvaluator;
    if (!trains || !incarnation.guard || !incarnation.program) continue;
    incarnation.aborted = words;
    kill(incarnation.program, SIGABRT);
    kill(incarnation.program, SIGCONT);  // a stopped process would not see it
  }
}

base::Duration LocalBackend::GraceOf(ReplicaId id, int32_t attempt) const {
  const auto it = incarnations_.find(Key{id, attempt});
  return std::chrono::milliseconds(it == incarnations_.end() ? 0 : it->second.grace_ms);
}

bool LocalBackend::AnyAlive() const {
  return std::ranges::any_of(incarnations_,
                             [](const auto& entry) { return entry.second.guard != 0; });
}

std::vector<LocalBackend::Living> LocalBackend::LivingReplicas() const {
  std::vector<Living> out;
  for (const auto& [key, i] : incarnations_) {
    if (i.guard) out.push_back({i.id, i.attempt, i.guard, i.program, i.started});
  }
  return out;
}

}  // namespace backend::local
