#include "backend/local/limits.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/tfjob.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "io/files.h"

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

std::optional<Enforcement> TryV2(const Limits& limits, const std::string& name) {
  const auto own = OwnCgroups();
  for (const Mount& mount : CgroupMounts()) {
    if (!mount.v2 || !own.contains("")) continue;
    const std::string parent = OwnDir(mount.path, own.at(""));
    const std::string controllers = io::ReadFile(parent + "/cgroup.controllers").value_or("");
    std::string wanted;
    if (limits.memory_bytes) wanted += "+memory ";
    if (limits.cpu_millis) wanted += "+cpu ";
    for (std::string_view c : base::Split(wanted, ' ')) {
      if (!c.empty() && controllers.find(c.substr(1)) == std::string::npos) return std::nullopt;
    }
    if (!WriteTo(parent + "/cgroup.subtree_control", wanted)) {
      // A group with processes of its own cannot have children with controllers: move us into a
      // leaf first.
      const std::string leaf = parent + "/trainyard-" + std::to_string(getpid());
      mkdir(leaf.c_str(), 0755);
      if (!WriteTo(leaf + "/cgroup.procs", "0") ||
          !WriteTo(parent + "/cgroup.subtree_control", wanted)) {
        WriteTo(parent + "/cgroup.procs", "0");
        rmdir(leaf.c_str());
        return std::nullopt;
      }
    }
    const std::string dir = parent + "/" + name;
    if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return std::nullopt;
    bool good = true;
    if (limits.memory_bytes) {
      good &= WriteTo(dir + "/memory.max", std::to_string(limits.memory_bytes));
      if (io::Exists(dir + "/memory.swap.max")) good &= WriteTo(dir + "/memory.swap.max", "0");
    }
    if (limits.cpu_millis)
      good &= WriteTo(dir + "/cpu.max", fmt::format("{} 100000", limits.cpu_millis * 100));
    if (!good) {
      rmdir(dir.c_str());
      return std::nullopt;
    }
    return Enforcement{.cgroups = {dir}, .by = "cgroup v2"};
  }
  return std::nullopt;
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
        done = WriteTo(dir + "/cpu.cfs_quota_us", std::to_string(limits.cpu_millis * 100));
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

Enforcement Enforce(const Limits& limits, const std::string& name) {
  if (limits == Limits()) return {};
  const char* wish = std::getenv("TRAINYARD_LIMITS");
  const std::string means = wish ? wish : "";
  if (means.empty() || means == "cgroup-v2") {
    if (auto v2 = TryV2(limits, name)) return *v2;
  }
  if (means.empty() || means == "cgroup-v1") {
    if (auto v1 = TryV1(limits, name)) return *v1;
  }
  Enforcement out;
  if (limits.memory_bytes) {
    out.poll_memory = true;
    out.by = "polling";
  }
  if (limits.cpu_millis) out.not_enforced = "the CPU limit (no writable cgroup)";
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
