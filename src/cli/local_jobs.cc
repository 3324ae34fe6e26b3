#include "cli/local_jobs.h"

#include <algorithm>

#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/local_backend.h"
#include "cli/place.h"
#include "cli/supervise.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/unix_socket.h"

namespace cli {
namespace {

using backend::local::JobDir;
using backend::local::Listed;
using base::Result;

timespec Started(const JobDir& dir) {
  struct stat info{};
  stat(dir.File("job.yaml").c_str(), &info);
  struct stat run{};
  stat(dir.File("lock").c_str(), &run);
  return std::max(info.st_mtim, run.st_mtim, [](const timespec& a, const timespec& b) {
    return std::pair(a.tv_sec, a.tv_nsec) < std::pair(b.tv_sec, b.tv_nsec);
  });
}

}  // namespace

Result<LocalJob> FindLocalJob(const std::string& name_space, const std::string& name) {
  const std::vector<Listed> jobs = backend::local::ListJobs(name_space);
  std::vector<std::string> names;
  for (const Listed& job : jobs) {
    if (job.name == name) return LocalJob{job.name_space, job.name, job.dir};
    names.push_back(job.name);
  }
  if (!name.empty() || jobs.empty()) return std::unexpected(NoSuchJob(name_space, name, names));
  const auto latest = std::ranges::max_element(jobs, [](const Listed& a, const Listed& b) {
    const timespec x = Started(a.dir), y = Started(b.dir);
    return std::pair(x.tv_sec, x.tv_nsec) < std::pair(y.tv_sec, y.tv_nsec);
  });
  return LocalJob{latest->name_space, latest->name, latest->dir};
}

Result<base::Json> Ask(const LocalJob& job, base::JsonObject request) {
  const std::string answer = TRY(io::Request(SocketPath(job.name_space, job.name),
                                             base::CompactJson(base::Json(std::move(request)))));
  base::Json json = TRY(base::ParseJson(answer));
  if (const std::string error = base::StringOr(json, "error"); !error.empty())
    return base::Invalid(error);
  return json;
}

Result<std::vector<std::string>> RemoveRecords(const LocalJob& job, bool with_output) {
  const JobDir& dir = job.dir;
  const io::Lock lock = TRY(io::Lock::TryTake(dir.File("lock")));
  backend::local::EndStrays(dir);
  unlink(SocketPath(job.name_space, job.name).c_str());  // of a supervisor that was killed
  std::vector<std::string> kept;
  for (const std::string& entry : io::ListDir(dir.path())) {
    const bool users = entry == "output" || entry == "checkpoints" || entry == "tensorboard";
    if (users && !with_output && !io::ListDir(dir.File(entry)).empty()) {
      kept.push_back(dir.File(entry));
    } else {
      TRY(io::RemoveTree(dir.File(entry)));
    }
  }
  if (kept.empty()) TRY(io::RemoveTree(dir.path()));
  return kept;
}

bool DropIfExpired(const Listed& listed, const api::JobStatus& status) {
  if (!status.completion_time) return false;
  // Few jobs have one, and a thousand manifests take a while to parse.
  auto text = io::ReadFile(listed.dir.File("job.yaml"));
  if (!text || text->find("ttlSecondsAfterFinished") == std::string::npos) return false;
  auto job = listed.dir.LoadJob();
  if (!job || !job->spec.run_policy.ttl_seconds_after_finished) return false;
  const auto ttl = std::chrono::seconds(*job->spec.run_policy.ttl_seconds_after_finished);
  if (io::Now() < *status.completion_time + ttl || listed.dir.IsAlive()) return false;
  // After an error it is tried again at the next listing.
  return RemoveRecords({listed.name_space, listed.name, listed.dir}, false).has_value();
}

}  // namespace cli
