#include "backend/local/job_dir.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "api/decode.h"
#include "base/strings.h"
#include "base/yaml.h"

namespace backend::local {
namespace {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr int kMostNumbers = 1'000'000;

std::string EnvOr(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value && *value ? value : fallback;
}

Result<Claim> Fill(const std::string& path, const std::string& name) {
  JobDir dir(path);
  for (const char* sub : {"/logs", "/endings", "/code"}) TRY(io::MakeDirs(path + sub));
  io::Lock lock = TRY(io::Lock::TryTake(dir.File("lock")));
  return Claim{dir, name, std::move(lock)};
}

// What a job's directory, just made, begins with; no directory is left after an error.
Result<Claim> Prepare(const std::string& path, const std::string& name) {
  auto claim = Fill(path, name);
  if (!claim) base::IgnoreError(io::RemoveTree(path), "the first error is the one to tell");
  return claim;
}

}  // namespace

std::string HomePath() {
  const std::string state = EnvOr("XDG_STATE_HOME", EnvOr("HOME", "/tmp") + "/.local/state");
  return io::AbsolutePath(EnvOr("TRAINYARD_HOME", state + "/trainyard"));
}

Result<std::string> Home() {
  const std::string home = HomePath();
  TRY_AS("state directory (TRAINYARD_HOME)", io::MakeDirs(home));
  struct stat info;
  if (stat(home.c_str(), &info) != 0) return base::FromErrno("state directory " + home, errno);
  if (info.st_uid != geteuid()) {
    return base::Invalid(fmt::format(
        "state directory {} belongs to another user (uid {}): set TRAINYARD_HOME to one of yours",
        home, info.st_uid));
  }
  if (access(home.c_str(), W_OK) != 0) {
    return base::Invalid(
        fmt::format("state directory {} is not writable: set TRAINYARD_HOME to one that is", home));
  }
  return home;
}

namespace {

// What a job writes before it runs is small, but a job that cannot even begin its logs only waits.
constexpr uint64_t kLeastRoom = 1 << 20;

Result<std::string> HomeWithRoom() {
  const std::string home = TRY(Home());
  struct statvfs disk;
  if (statvfs(home.c_str(), &disk) == 0 && disk.f_bavail * disk.f_frsize < kLeastRoom)
    return base::FromErrno("state directory " + home, ENOSPC);
  return home;
}

}  // namespace

Result<api::Job> JobDir::LoadJob() const {
  const std::string text = TRY(io::ReadFile(File("job.yaml")));
  api::Decoded decoded = api::DecodeJob(text);
  if (!decoded.errors.empty())
    return base::Invalid(api::Describe(decoded.errors, File("job.yaml")));
  decoded.job.status = LoadStatus();
  return decoded.job;
}

Result<> JobDir::SaveJob(const api::Job& job) const {
  return io::ReplaceFileDurably(File("job.yaml"), base::WriteYaml(api::EncodeJob(job)));
}

api::JobStatus JobDir::LoadStatus() const {
  auto text = io::ReadFile(File("status.json"));
  if (!text) return {};
  auto json = base::ParseJson(*text);
  return json ? api::DecodeStatus(*json) : api::JobStatus();
}

Result<> JobDir::SaveStatus(const api::JobStatus& status, bool durably) const {
  const std::string text = base::IndentedJson(api::EncodeStatus(status));
  const std::string path = File("status.json");
  return durably ? io::ReplaceFileDurably(path, text) : io::ReplaceFile(path, text);
}

Result<RunFile> JobDir::LoadRun() const {
  const Json json = TRY(base::ParseJson(TRY(io::ReadFile(File("run.json")))));
  RunFile run{.script = base::StringOr(json, "script"),
              .python = base::StringOr(json, "python"),
              .directory = base::StringOr(json, "directory"),
              .output = base::StringOr(json, "output"),
              .first_port = static_cast<int32_t>(base::IntOr(json, "firstPort")),
              .hang_seconds = base::IntOr(json, "hangSeconds"),
              .master_port = static_cast<int32_t>(base::IntOr(json, "masterPort")),
              .whole_code = base::BoolOr(json, "wholeCode")};
  if (const Json* ports = base::Find(json, "ports"); ports && ports->is_array()) {
    for (const Json& port : ports->get_array()) {
      if (port.is_int64()) run.ports.push_back(static_cast<int32_t>(port.get_int64()));
    }
  }
  return run;
}

Result<> JobDir::SaveRun(const RunFile& run) const {
  JsonArray ports;
  for (int32_t port : run.ports) ports.emplace_back(port);
  return io::ReplaceFile(File("run.json"),
                         base::IndentedJson(JsonObject{{"script", run.script},
                                                       {"python", run.python},
                                                       {"directory", run.directory},
                                                       {"output", run.output},
                                                       {"firstPort", run.first_port},
                                                       {"hangSeconds", run.hang_seconds},
                                                       {"masterPort", run.master_port},
                                                       {"wholeCode", run.whole_code},
                                                       {"ports", std::move(ports)}}));
}

// Entries end with a zero byte, as in /proc/PID/environ: a value may have lines.
std::optional<std::vector<std::string>> JobDir::LoadEnvironment() const {
  const auto text = io::ReadFile(File("environment"));
  if (!text) return std::nullopt;
  std::vector<std::string> out;
  for (std::string_view entry : base::Split(*text, '\0')) {
    if (!entry.empty()) out.emplace_back(entry);
  }
  return out;
}

Result<> JobDir::SaveEnvironment(const std::vector<std::string>& environment) const {
  std::string text;
  for (const std::string& entry : environment) text += entry + '\0';
  return io::ReplaceFile(File("environment"), text, 0600);
}

JobDir Locate(const std::string& name_space, const std::string& name) {
  return JobDir(HomePath() + "/" + name_space + "/" + name);
}

Result<Claim> ClaimNamed(const std::string& name_space, const std::string& name) {
  const std::string parent = TRY(HomeWithRoom()) + "/" + name_space;
  TRY(io::MakeDirs(parent));
  const std::string path = parent + "/" + name;
  if (mkdir(path.c_str(), 0755) != 0) {
    if (errno != EEXIST) return base::FromErrno("make directory " + path, errno);
    if (!io::Exists(path + "/lock")) {
      return std::unexpected(
          Error(ErrorKind::kTaken,
                fmt::format("the output of a deleted job named {} is in {}: choose another --name, "
                            "or remove it: trainyard delete --with-output {}",
                            name, path, name)));
    }
    return std::unexpected(
        Error(ErrorKind::kTaken,
              fmt::format(
                  "a job named {} exists: choose another --name, or remove it: trainyard delete {}",
                  name, name)));
  }
  return Prepare(path, name);
}

Result<Claim> ClaimNumbered(const std::string& name_space, const std::string& base_name) {
  const std::string parent = TRY(HomeWithRoom()) + "/" + name_space;
  TRY(io::MakeDirs(parent));
  int64_t number = 1;
  for (const std::string& taken : io::ListDir(parent)) {
    if (!taken.starts_with(base_name + "-")) continue;
    const auto n = base::ParseInt(taken.substr(base_name.size() + 1));
    if (n && *n < kMostNumbers) number = std::max(number, *n + 1);
  }
  for (;; ++number) {
    const std::string name = fmt::format("{}-{}", base_name, number);
    const std::string path = parent + "/" + name;
    if (mkdir(path.c_str(), 0755) == 0) return Prepare(path, name);
    if (errno != EEXIST) return base::FromErrno("make directory " + path, errno);
  }
}

std::vector<Listed> ListJobs(const std::string& name_space) {
  std::vector<Listed> jobs;
  const std::string home = HomePath();
  for (const std::string& space : io::ListDir(home)) {
    if (space.starts_with('.') || (!name_space.empty() && space != name_space)) continue;
    for (const std::string& name : io::ListDir(home + "/" + space)) {
      JobDir dir(home + "/" + space + "/" + name);
      if (io::Exists(dir.File("lock"))) jobs.push_back({space, name, dir});
    }
  }
  return jobs;
}

}  // namespace backend::local
