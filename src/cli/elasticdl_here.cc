// `elasticdl train` with TRAINYARD_ON=local: the same job as processes of this machine, which see
// its volumes at the paths that they would have in a pod (guard/mounts.cc).
#include <cerrno>

#include <fmt/core.h>
#include <unistd.h>

#include "backend/local/replica.h"
#include "base/strings.h"
#include "cli/elasticdl_command.h"
#include "cli/plan.h"
#include "cli/python.h"
#include "cli/refuse.h"
#include "cli/run.h"
#include "io/files.h"
#include "io/process.h"

namespace cli {
namespace {

using base::Invalid;
using base::Result;
using namespace std::chrono_literals;

Result<> CheckSource(const EdlVolume& volume) {
  if (!volume.claim_name.empty()) {
    return Invalid(fmt::format(
        "--volume: claim_name={}: there are no claims on this machine: give host_path=DIR instead",
        volume.claim_name));
  }
  const std::string from =
      volume.sub_path.empty() ? volume.host_path : volume.host_path + "/" + volume.sub_path;
  if (!io::Exists(from)) {
    return Invalid(fmt::format(
        "--volume: {} is not there, and nothing is made on this machine: mkdir -p {}", from, from));
  }
  if ((volume.type == "Directory" && !io::IsDirectory(from)) ||
      (volume.type == "File" && io::IsDirectory(from))) {
    return Invalid(fmt::format("--volume: {} is no {}", from, base::Lower(volume.type)));
  }
  return {};
}

// A directory that is built anew for a mount in it takes no new files. Below / nobody makes any;
// where the user does, he would miss them.
Result<> CheckPlace(const EdlVolume& volume) {
  std::string up = volume.mount_path;
  while (!io::Exists(up)) up = io::DirName(up);
  if (up == volume.mount_path || up == "/" || access(up.c_str(), W_OK) != 0) return {};
  return Invalid(fmt::format(
      "--volume: mount_path={} is not there, and {} is a directory that you write to: mkdir -p {}",
      volume.mount_path, up, volume.mount_path));
}

Result<> CheckApart(const std::vector<EdlVolume>& volumes) {
  for (const EdlVolume& outer : volumes) {
    for (const EdlVolume& inner : volumes) {
      if (inner.mount_path.starts_with(outer.mount_path + "/")) {
        return Invalid(
            fmt::format("--volume: mount_path={} is inside mount_path={}: on this machine they "
                        "must lie apart",
                        inner.mount_path, outer.mount_path));
      }
    }
  }
  return {};
}

// Tries what every replica will do.
Result<> TryMounts(const api::Job& job) {
  io::Spawn spawn{.argv = {TRY(io::HelperProgram("trainyard-guard")), "--check"},
                  .env = io::Environment()};
  const auto mounts = backend::local::MountsOf(job.spec.replicas.begin()->second.pod_template);
  if (mounts.empty()) return {};
  for (const backend::local::Mount& mount : mounts)
    spawn.argv.insert(spawn.argv.end(), {"--mount", mount.from, mount.to});
  const io::Ended ended = TRY_AS("--volume", io::RunToItsEnd(std::move(spawn), 30s, 64 << 10));
  if (ended.status == 0) return {};
  return Invalid(fmt::format(
      "--volume: this machine does not let you mount ({}): as root, sysctl -w "
      "kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0 allows "
      "it where one of them forbids it; or leave --volume out and let the program read {}",
      base::OneLine(base::Trim(ended.output), 300), mounts.front().from));
}

Result<> CheckVolumes(const EdlJob& job) {
  for (const EdlVolume& volume : job.volumes) {
    TRY(CheckSource(volume));
    TRY(CheckPlace(volume));
  }
  TRY(CheckApart(job.volumes));
  return TryMounts(job.job);
}

Result<Plan> PlanOf(const EdlJob& job, const EdlArgs& args) {
  Plan plan{.job = job.job, .base_name = job.job.metadata.name, .warnings = args.warnings()};
  if (const auto useless = GivenForClusters(args); !useless.empty())
    plan.warnings.push_back(base::Join(useless, ", ") + ": no effect on this machine");
  const std::string command(base::Trim(args.Get("job_command")));
  if (command.starts_with("python ") && io::FindProgram("python").empty()) {
    return Invalid(
        "--job_command: there is no python on PATH: activate the virtual environment that has "
        "TensorFlow");
  }
  plan.run.python = ChoosePython(Args()).value_or("");
  char directory[4096];
  if (!getcwd(directory, sizeof directory)) return base::FromErrno("current directory", errno);
  plan.run.directory = directory;
  TRY(CheckVolumes(job));
  TRY(CheckJob(plan));
  TRY(CheckRunsHere(plan));
  return plan;
}

}  // namespace

int TrainHere(const EdlJob& job, const EdlArgs& args) {
  auto plan = PlanOf(job, args);
  // As there: it returns at once.
  return plan ? RunHere(*plan, {.detach = true}) : Refuse(plan.error());
}

}  // namespace cli
