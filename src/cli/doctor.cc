// `doctor`: is this machine fit to train, and if not, what to do about it.
#include <fmt/core.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backend/local/job_dir.h"
#include "backend/local/limits.h"
#include "backend/local/ports.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "cli/checkup.h"
#include "cli/cluster.h"
#include "cli/cluster_doctor.h"
#include "cli/commands.h"
#include "cli/python.h"
#include "cli/refuse.h"
#include "io/files.h"
#include "io/process.h"
#include "io/terminal.h"

namespace cli {
namespace {

void CheckPython(const Args& args, std::vector<Finding>& out) {
  const auto chosen = ChoosePython(args);
  if (!chosen) {
    out.push_back({Health::kBad, "no Python", "install python3, or name one with --python"});
    return;
  }
  const std::string& python = *chosen;
  out.push_back(
      {Health::kGood,
       fmt::format("Python {} at {}",
                   AskPython(python, "import platform; print(platform.python_version())"), python),
       ""});
  // Versions from package metadata: importing TensorFlow takes seconds.
  const std::string versions =
      AskPython(python,
                "import importlib.metadata as m\n"
                "def v(n):\n"
                "  try: return m.version(n)\n"
                "  except m.PackageNotFoundError: return ''\n"
                "print(v('tensorflow') or v('tensorflow-cpu'), v('keras') or '-', v('tf-keras') or "
                "'-', v('tensorboard') or '-', sep='|')");
  const auto parts = base::Split(versions, '|');
  if (parts.size() != 4 || parts[0].empty()) {
    out.push_back({Health::kBad, "no TensorFlow in this Python",
                   fmt::format("{} -m pip install tensorflow-cpu", python)});
    return;
  }
  out.push_back({Health::kGood, fmt::format("TensorFlow {}", parts[0]), ""});
  if (parts[1].starts_with("3")) {
    const bool legacy = parts[2] != "-";
    out.push_back(
        {Health::kNote,
         fmt::format("Keras {}: its fit() does not work under MultiWorkerMirroredStrategy",
                     parts[1]),
         legacy ? "set TF_USE_LEGACY_KERAS=1 (tf-keras is installed), or use a custom training loop"
                : "use a custom training loop (examples/mnist.py), pip install --no-deps tf-keras "
                  "of the same "
                  "version with TF_USE_LEGACY_KERAS=1, or TensorFlow 2.15"});
  } else {
    out.push_back(
        {Health::kGood, fmt::format("Keras {}: fit() works with every strategy", parts[1]), ""});
  }
  if (parts[3] == "-") {
    out.push_back({Health::kNote, "no TensorBoard in this Python",
                   fmt::format("{} -m pip install tensorboard", python)});
  }
}

void CheckLimits(std::vector<Finding>& out) {
  backend::local::Enforcer enforcer;
  const backend::local::Enforcement means = enforcer.Enforce(
      {.memory_bytes = 64 << 20, .cpu_millis = 1000}, fmt::format("trainyard-doctor-{}", getpid()));
  for (const std::string& dir : means.cgroups) rmdir(dir.c_str());
  if (means.by == "polling") {
    out.push_back(
        {Health::kNote, "memory limits by polling, CPU limits not at all: no writable cgroup",
         "start trainyard with: systemd-run --user --scope -p Delegate=yes trainyard run …"});
  } else if (!means.not_enforced.empty()) {
    out.push_back(
        {Health::kNote,
         fmt::format("memory limits by {}, CPU limits not at all: no CPU controller", means.by),
         "let whoever delegates the cgroup delegate cpu too (systemd: Delegate=cpu memory)"});
  } else {
    out.push_back({Health::kGood, "memory and CPU limits by " + means.by, ""});
  }
}

void CheckDisk(std::vector<Finding>& out) {
  auto home = backend::local::Home();
  if (!home) {
    out.push_back(
        {Health::kBad, home.error().text(), "set TRAINYARD_HOME to a directory of yours"});
    return;
  }
  struct statvfs info;
  if (statvfs(home->c_str(), &info) != 0) return;
  const int64_t free_bytes =
      static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  const std::string text = fmt::format("{} free in {}", base::FormatBytes(free_bytes), *home);
  if (free_bytes < (int64_t{1} << 30)) {
    out.push_back({Health::kBad, text, "free some space, or set TRAINYARD_HOME to a larger disk"});
  } else {
    out.push_back({Health::kGood, text, ""});
  }
}

void CheckPorts(std::vector<Finding>& out) {
  auto ports = backend::local::PortLeases().Lease(8, 0, {});
  if (!ports) {
    out.push_back(
        {Health::kBad, ports.error().text(), "end what holds them, or give a range with -p"});
    return;
  }
  out.push_back(
      {Health::kGood,
       fmt::format("ports from {} are free (TensorFlow listens on all addresses: use a firewall on "
                   "shared networks)",
                   ports->front()),
       ""});
}

}  // namespace

int DoctorCommand(const Args& args) {
  auto context = ContextOf(args);
  if (!context) return Refuse(context.error());
  if (*context) return ExamineCluster(args, **context);
  std::vector<Finding> findings;
  CheckPython(args, findings);
  CheckDisk(findings);
  CheckPorts(findings);
  CheckLimits(findings);
  return Report(findings, args.json());
}

}  // namespace cli
