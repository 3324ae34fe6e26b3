// `run`, `resume`: claim or take over a job's directory, then supervise it here or leave it behind.
#include "cli/run.h"

#include <csignal>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/decode.h"
#include "backend/local/kept_code.h"
#include "backend/local/local_backend.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/cluster_run.h"
#include "cli/commands.h"
#include "cli/header.h"
#include "cli/local_jobs.h"
#include "cli/plan.h"
#include "cli/refuse.h"
#include "cli/supervise.h"
#include "core/reconcile.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/process.h"
#include "io/terminal.h"
#include "io/unix_socket.h"

namespace cli {
namespace {

using api::Role;
using backend::local::Claim;
using backend::local::JobDir;
using backend::local::LocalBackend;
using base::Result;

Result<bool> KeepCode(const JobDir& dir, const std::string& script, std::string_view text) {
  return backend::local::KeepCode(script, text, dir.File("code"), backend::local::HomePath());
}

// Everything a supervisor needs is on disk before one starts; after an error nothing is left.
Result<> WriteJob(const Claim& claim, const Plan& plan, const api::Job& job,
                  backend::local::RunFile run) {
  const JobDir& dir = claim.dir;
  if (!run.script.empty()) run.whole_code = TRY(KeepCode(dir, run.script, plan.script_text));
  if (!plan.command_text.empty()) TRY(io::WriteFile(dir.File("code/command"), plan.command_text));
  if (!plan.env_text.empty()) TRY(io::WriteFile(dir.File("env"), plan.env_text, 0600));
  TRY(dir.SaveEnvironment(io::Environment()));
  TRY(dir.SaveRun(run));
  return dir.SaveJob(job);
}

// It has two lines to write; who reads them might not let it.
constexpr int kStarterLeavesMs = 1000;

// The supervisor as a process of its own, in a session of its own. Returns when it has taken over
// or has failed to.
int Detach(Claim claim, const api::Job& job) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return Refuse(base::FromErrno("pipe", errno).error());
  fflush(nullptr);
  const io::Fd starter(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int log = open(claim.dir.File("supervisor.log").c_str(),
                         O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    auto world = LocalBackend::Open(std::move(claim), job);
    const std::string word = world ? "ok" : world.error().text();
    (void)!write(pipe_ends[1], word.data(), word.size());
    close(pipe_ends[1]);
    if (!world) _exit(kRefused);
    // A cgroup given to us can be divided among replicas once nobody else is in it.
    pollfd gone{starter.get(), POLLIN, 0};
    if (starter.valid()) poll(&gone, 1, kStarterLeavesMs);
    _exit(Supervise(std::move(*world), job, {.quiet = true}));
  }
  close(pipe_ends[1]);
  if (child < 0) return Refuse(base::FromErrno("fork", errno).error());
  std::string word;
  char buffer[1024];
  for (ssize_t size; (size = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) {
    word.append(buffer, static_cast<size_t>(size));
  }
  close(pipe_ends[0]);
  if (word == "ok") return 0;
  return Refuse(word.empty() ? "the supervisor could not be started" : word);
}

RunWish WishOf(const Args& args) {
  return {.detach = args.Has("detach"), .raw = args.Has("raw"), .json = args.json()};
}

// The header comes when nothing can be refused any more.
int Host(Claim claim, const api::Job& job, const RunWish& wish, const std::string& header) {
  // Who reads our output may leave early: the job goes on.
  signal(SIGPIPE, SIG_IGN);
  if (wish.detach) {
    const int status = Detach(std::move(claim), job);
    if (status == 0 && !wish.json) io::WriteOut(1, header);
    return status;
  }
  auto world = LocalBackend::Open(std::move(claim), job);
  if (!world) return Refuse(world.error());
  if (!wish.json) io::WriteOut(1, header);
  return Supervise(std::move(*world), job, {.raw = wish.raw, .json = wish.json});
}

// A supervisor that was killed leaves guards that need a moment to kill and reap; the lock is
// theirs until then.
Result<io::Lock> TakeOver(const LocalJob& job) {
  for (int tries = 0;; ++tries) {
    auto lock = io::Lock::TryTake(job.dir.File("lock"));
    if (lock || lock.error().kind() != base::ErrorKind::kTaken) return lock;
    if (tries == 30 || io::Request(SocketPath(job.name_space, job.name), "{}")) {
      return base::Invalid(
          fmt::format("{} is running already: trainyard logs -f {}", job.name, job.name));
    }
    poll(nullptr, 0, 100);
  }
}

// Takes the current code and environment for a job where the user says so.
Result<> Renew(const Args& args, const LocalJob& job, backend::local::RunFile& run) {
  if (args.Has("env")) TRY(job.dir.SaveEnvironment(io::Environment()));
  if (!args.Has("code")) return {};
  if (run.script.empty())
    return base::Invalid(
        fmt::format("--code: {} was started from a manifest, and none of its code is kept: it runs "
                    "what its command names",
                    job.name));
  const std::string text = TRY_AS("--code", io::ReadFile(run.script));
  run.whole_code = TRY(KeepCode(job.dir, run.script, text));
  return job.dir.SaveRun(run);
}

// "code as started, current environment"; tells the user of what is not as it was.
std::string RunsWith(const Args& args, const LocalJob& job, const backend::local::RunFile& run) {
  const auto note = [&](const std::string& text) {
    if (!args.json()) fmt::print(stderr, "trainyard: note: {}\n", text);
  };
  const bool kept = !args.Has("env") && job.dir.LoadEnvironment();
  if (!kept && !args.Has("env"))
    note(fmt::format("{} was started by an older version, which did not keep its environment: it "
                     "gets the current one",
                     job.name));
  const std::string environment = kept ? "environment as started" : "current environment";
  if (run.script.empty()) return environment;
  if (args.Has("code"))
    return kept ? "current code, " + environment : "current code and environment";
  if (!run.whole_code)
    note(fmt::format("not all modules beside {} were kept: the current ones are used",
                     io::BaseName(run.script)));
  if (const auto changed = backend::local::ChangedCode(run.script, job.dir.File("code"));
      !changed.empty()) {
    note(fmt::format("{} {} changed since {} was started, which runs the old code: --code takes "
                     "the new",
                     base::OneLine(base::Join(changed, ", "), 200),
                     changed.size() == 1 ? "has" : "have", job.name));
  }
  return kept ? "code and environment as started" : "code as started, " + environment;
}

}  // namespace

int RunHere(const Plan& plan, const RunWish& wish) {
  for (const std::string& warning : plan.warnings)
    fmt::print(stderr, "trainyard: warning: {}\n", warning);
  const std::string space = plan.job.metadata.name_space;
  auto claim = plan.job.metadata.name.empty()
                   ? backend::local::ClaimNumbered(space, plan.base_name)
                   : backend::local::ClaimNamed(space, plan.job.metadata.name);
  if (!claim) return Refuse(claim.error());
  api::Job job = plan.job;
  job.metadata.name = claim->name;
  backend::local::RunFile run = plan.run;
  if (run.output.empty()) run.output = claim->dir.File("output");
  const JobDir dir = claim->dir;
  if (auto written = WriteJob(*claim, plan, job, run); !written) {
    base::IgnoreError(io::RemoveTree(dir.path()), "the first error is the one to tell");
    return Refuse(written.error());
  }
  const int status =
      Host(std::move(*claim), job, wish, Header(job, "local", plan.script_text, run.python));
  if (status == kRefused && dir.LoadStatus().conditions.empty()) {
    base::IgnoreError(io::RemoveTree(dir.path()),
                      "refused before anything was started: nothing to keep");
  } else if (wish.detach && status == 0) {
    io::WriteOut(1, wish.json
                        ? base::CompactJson(base::JsonObject{{"job", job.metadata.name}}) + "\n"
                        : fmt::format("  follow  trainyard logs -f {}\n", job.metadata.name));
  }
  return status;
}

int RunCommand(const Args& args) {
  auto context = ContextOf(args);
  if (!context) return Refuse(context.error());
  if (*context) return RunOnCluster(args, **context);
  auto plan = MakePlan(args);
  return plan ? RunHere(*plan, WishOf(args)) : Refuse(plan.error());
}

int ResumeCommand(const Args& args) {
  auto context = ContextOf(args);
  if (!context) return Refuse(context.error());
  if (*context) return ResumeOnCluster(args, **context);
  auto found = FindLocalJob(args.name_space(), args.operand(0));
  if (!found) return Refuse(found.error());
  auto lock = TakeOver(*found);
  if (!lock) return Refuse(lock.error());
  auto job = found->dir.LoadJob();
  if (!job) return Refuse(job.error());
  auto run = found->dir.LoadRun();
  if (!run) return Refuse(run.error());
  if (api::Has(job->status, "Succeeded"))
    return Refuse(found->name + " has succeeded: there is nothing to resume");
  if (!io::IsDirectory(run->directory)) {
    return Refuse(fmt::format("{} runs in {}, which is gone: create it again, then resume",
                              found->name, run->directory));
  }
  if (auto renewed = Renew(args, *found, *run); !renewed) return Refuse(renewed.error());
  if (api::Has(job->status, "Failed")) {
    job->status = core::Revived(*job, io::Now());
    if (auto saved = found->dir.SaveStatus(job->status); !saved) return Refuse(saved.error());
  }
  job->spec.run_policy.suspend = false;
  if (args.Has("worker-memory")) {
    auto bytes = base::ParseMemory(args.Get("worker-memory"));
    if (!bytes) return Refuse("--worker-memory: " + bytes.error().text());
    for (auto& [role, spec] : job->spec.replicas) {
      if (role != Role::kPs) api::SetMemoryLimit(spec.pod_template, *bytes);
    }
  }
  if (auto saved = found->dir.SaveJob(*job); !saved) return Refuse(saved.error());
  const std::string code =
      run->script.empty()
          ? ""
          : io::ReadFile(found->dir.File("code/" + io::BaseName(run->script))).value_or("");
  return Host(Claim{found->dir, found->name, std::move(*lock)}, *job, WishOf(args),
              Header(*job, "local", code, run->python, RunsWith(args, *found, *run)));
}

}  // namespace cli
