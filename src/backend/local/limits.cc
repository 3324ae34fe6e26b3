#include "backend/local/limits.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/tfjob.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "io/files.h"
#include "io/process.h"

namespace backend::local {
namespace {

using base::Result;

// A write to a cgroup file is a system call with an answer: one write, checked.
bool WriteTo(const std::string& path, const std::string& text) {
  const io::Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() &&
         write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Our own cgroup: "" is v2, "memory" and "cpu" are v1 controllers.
std::map<std::string, std::string> OwnCgroups() {
  std::map<std::string, std::string> out;
  auto text = io::ReadFile("/proc/self/cgroup");
  if (!text) return out;
  for (std::string_view line : base::Split(*text, '\n')) {
    const size_t a = line.find(':'), b = line.find(':', a + 1);
    if (a == std::string_view::npos || b == std::string_view::npos) continue;
    const std::string path(line.substr(b + 1));
    const std::string_view controllers = line.substr(a + 1, b - a - 1);
    for (std::string_view controller : base::Split(controllers, ',')) {
      out[std::string(controller)] = path;
    }
  }
  return out;
}

struct Mount {
  std::string path;
  bool v2 = false;
  std::vector<std::string> options;
};

std::vector<Mount> CgroupMounts() {
  std::vector<Mount> out;
  auto text = io::ReadFile("/proc/self/mounts");
  if (!text) return out;
  for (std::string_view line : base::Split(*text, '\n')) {
    const auto fields = base::Split(line, ' ');
    if (fields.size() < 4 || (fields[2] != "cgroup" && fields[2] != "cgroup2")) continue;
    Mount mount{.path = std::string(fields[1]), .v2 = fields[2] == "cgroup2"};
    for (std::string_view option : base::Split(fields[3], ',')) mount.options.emplace_back(option);
    out.push_back(std::move(mount));
  }
  return out;
}

// Where our own cgroup is seen: below the mount, or the mount itself when a namespace hides the
// path.
std::string OwnDir(const std::string& mount, const std::string& path) {
  const std::string dir = mount + (path == "/" ? "" : path);
  return io::IsDirectory(dir) ? dir : mount;
}

// In each 100 milliseconds, the kernel's period; less than one millisecond it refuses.
int64_t QuotaMicros(const Limits& limits) {
  return std::max<int64_t>(limits.cpu_millis * 100, 1000);
}

std::optional<Enforcement> TryV1(const Limits& limits, const std::string& name) {
  const auto own = OwnCgroups();
  Enforcement out{.by = "cgroup v1"};
  const auto undo = [&] {
    for (const std::string& dir : out.cgroups) rmdir(dir.c_str());
    return std::nullopt;
  };
  for (const char* controller : {"memory", "cpu"}) {
    const bool memory = controller == std::string_view("memory");
    if (memory ? limits.memory_bytes == 0 : limits.cpu_millis == 0) continue;
    bool done = false;
    for (const Mount& mount : CgroupMounts()) {
      if (mount.v2 || !own.contains(controller) ||
          std::ranges::find(mount.options, controller) == mount.options.end()) {
        continue;
      }
      const std::string dir = OwnDir(mount.path, own.at(controller)) + "/" + name;
      if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return undo();
      out.cgroups.push_back(dir);
      if (memory) {
        done = WriteTo(dir + "/memory.limit_in_bytes", std::to_string(limits.memory_bytes));
        WriteTo(dir + "/memory.memsw.limit_in_bytes", std::to_string(limits.memory_bytes));
      } else {
        done = WriteTo(dir + "/cpu.cfs_quota_us", std::to_string(QuotaMicros(limits)));
      }
      break;
    }
    if (!done) return undo();
  }
  return out;
}

}  // namespace

Result<Limits> LimitsOf(const base::Json& pod_template) {
  Limits limits;
  const base::Json* container = api::TensorFlowContainer(pod_template);
  const base::Json* resources = container ? base::Find(*container, "resources") : nullptr;
  const base::Json* wanted = resources ? base::Find(*resources, "limits") : nullptr;
  if (!wanted) return limits;
  const auto text = [&](std::string_view key) -> std::string {
    const base::Json* value = base::Find(*wanted, key);
    if (!value) return "";
    return value->is_string() ? std::string(value->get_string()) : base::CompactJson(*value);
  };
  if (const std::string memory = text("memory"); !memory.empty()) {
    limits.memory_bytes = TRY_AS("resources.limits.memory", base::ParseQuantity(memory));
  }
  if (const std::string cpu = text("cpu"); !cpu.empty()) {
    limits.cpu_millis = TRY_AS("resources.limits.cpu", base::ParseMilliQuantity(cpu));
  }
  return limits;
}

// Lets the children of a group have these controllers ("+memory +cpu"), for which we may have to
// leave it.
bool Enforcer::Divide(const std::string& group, const std::string& controllers) {
  if (WriteTo(group + "/cgroup.subtree_control", controllers)) return true;
  if (!leaf_.empty() || !EnterLeaf(group)) return false;
  if (WriteTo(group + "/cgroup.subtree_control", controllers)) return true;
  LeaveLeaf();
  return false;
}

Result<> Enforcer::EnterLeaf(const std::string& group) {
  const std::string leaf = group + "/trainyard-" + std::to_string(getpid());
  const std::string guard = TRY(io::HelperProgram("trainyard-guard"));
  const io::Fd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return base::FromErrno("socketpair", errno);
  }
  leaf_control_ = io::Fd(pair[0]);
  const io::Fd guard_end(pair[1]);
  if (mkdir(leaf.c_str(), 0755) != 0) return base::FromErrno("create " + leaf, errno);
  group_ = group;
  leaf_ = leaf;
  auto started = WriteTo(leaf + "/cgroup.procs", "0") ? io::Start({.argv = {guard, "--leaf", leaf},
                                                                   .env = {},
                                                                   .output = null.get(),
                                                                   .extra = {guard_end.get()}})
                                                      : base::FromErrno("enter " + leaf, errno);
  if (!started) {
    LeaveLeaf();
    return std::unexpected(std::move(started).error());
  }
  leaf_guard_ = *started;
  return {};
}

// A group that held us had no controllers for children, so all there are now are by us. The guard
// of the leaf lives in it and removes it, unless somebody has killed that guard.
void Enforcer::LeaveLeaf() {
  WriteTo(group_ + "/cgroup.subtree_control", "-memory -cpu");
  WriteTo(group_ + "/cgroup.procs", "0");
  leaf_control_.reset();
  if (leaf_guard_) waitpid(std::exchange(leaf_guard_, 0), nullptr, 0);
  rmdir(leaf_.c_str());
  group_.clear();
  leaf_.clear();
}

Enforcer::~Enforcer() {
  if (!leaf_.empty()) LeaveLeaf();
}

std::optional<Enforcement> Enforcer::TryV2(const Limits& limits, const std::string& name) {
  const auto own = OwnCgroups();
  const auto mounts = CgroupMounts();
  const auto mount = std::ranges::find_if(mounts, &Mount::v2);
  if (mount == mounts.end() || !own.contains("")) return std::nullopt;
  const std::string group = leaf_.empty() ? OwnDir(mount->path, own.at("")) : group_;

  const std::string listed = io::ReadFile(group + "/cgroup.controllers").value_or("");
  const auto there = base::Split(base::Trim(listed), ' ');  // "cpu" is no part of "cpuset"
  const auto has = [&](std::string_view c) { return std::ranges::find(there, c) != there.end(); };
  if (limits.memory_bytes && !has("memory")) return std::nullopt;
  if (limits.cpu_millis && !has("cpu")) return std::nullopt;
  if (!Divide(group, fmt::format("{}{}", limits.memory_bytes ? "+memory " : "",
                                 limits.cpu_millis ? "+cpu" : ""))) {
    return std::nullopt;
  }

  const std::string dir = group + "/" + name;
  if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return std::nullopt;
  bool good = true;
  if (limits.memory_bytes) {
    good &= WriteTo(dir + "/memory.max", std::to_string(limits.memory_bytes));
    if (io::Exists(dir + "/memory.swap.max")) good &= WriteTo(dir + "/memory.swap.max", "0");
    // As the kubelet: a replica that has lost one of its processes is not worth waiting for.
    WriteTo(dir + "/memory.oom.group", "1");
  }
  if (limits.cpu_millis)
    good &= WriteTo(dir + "/cpu.max", fmt::format("{} 100000", QuotaMicros(limits)));
  if (!good) {
    rmdir(dir.c_str());
    return std::nullopt;
  }
  return Enforcement{.cgroups = {dir}, .by = "cgroup v2"};
}

Enforcement Enforcer::Enforce(const Limits& limits, const std::string& name) {
  const char* wish = std::getenv("TRAINYARD_LIMITS");
  const std::string means = wish ? wish : "";
  const auto by_cgroup = [&](const Limits& some) -> std::optional<Enforcement> {
    if (some == Limits()) return std::nullopt;
    std::optional<Enforcement> out;
    if (means.empty() || means == "cgroup-v2") out = TryV2(some, name);
    if (!out && (means.empty() || means == "cgroup-v1")) out = TryV1(some, name);
    return out;
  };
  if (auto both = by_cgroup(limits)) return *both;
  Enforcement out;
  if (limits.memory_bytes && limits.cpu_millis) {
    out = by_cgroup({.memory_bytes = limits.memory_bytes}).value_or(Enforcement());
  }
  if (limits.memory_bytes && out.by.empty()) {
    out.poll_memory = true;
    out.by = "polling";
  }
  if (limits.cpu_millis) {
    out.not_enforced = "the CPU limit: no cgroup with a CPU controller is ours to use";
  }
  return out;
}

void Release(const std::vector<std::string>& cgroups) {
  for (const std::string& dir : cgroups) {
    // The kernel takes a moment to empty a group whose last process was just killed.
    for (int tries = 0; tries < 200 && rmdir(dir.c_str()) != 0 && errno != ENOENT; ++tries) {
      const std::string members = io::ReadFile(dir + "/cgroup.procs").value_or("");
      for (std::string_view pid : base::Split(members, '\n')) {
        if (const auto number = base::ParseInt(pid)) kill(static_cast<pid_t>(*number), SIGKILL);
      }
      poll(nullptr, 0, 10);
    }
  }
}

}  // namespace backend::local
