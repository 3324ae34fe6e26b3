#include "io/process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include "base/strings.h"

extern char** environ;

namespace io {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

bool ReadSmallFile(const char* path, char* text, size_t size) {
  const Fd fd(open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return false;
  const ssize_t length = read(fd.get(), text, size - 1);
  if (length <= 0) return false;
  text[length] = 0;
  return true;
}

}  // namespace

base::Result<pid_t> Start(const Spawn& spawn) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  if (spawn.output >= 0) {
    posix_spawn_file_actions_adddup2(&files, spawn.output, 1);
    posix_spawn_file_actions_adddup2(&files, spawn.error >= 0 ? spawn.error : spawn.output, 2);
  }
  // By way of copies above the targets, so that no source is overwritten before it is copied.
  const int above = 3 + static_cast<int>(spawn.extra.size());
  std::vector<Fd> copies;
  for (size_t i = 0; i < spawn.extra.size(); ++i) {
    copies.emplace_back(fcntl(spawn.extra[i], F_DUPFD_CLOEXEC, above));
    posix_spawn_file_actions_adddup2(&files, copies.back().get(), 3 + static_cast<int>(i));
  }
  posix_spawn_file_actions_addclosefrom_np(&files, 3 + static_cast<int>(spawn.extra.size()));
  if (!spawn.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&files, spawn.directory.c_str());
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const std::vector<char*> argv = Pointers(spawn.argv), env = Pointers(spawn.env);
  const int error = posix_spawn(&pid, argv[0], &files, &attributes, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error == E2BIG) {
    return base::Invalid(
        "its arguments and environment variables are too long: Linux takes 128 KiB in one of them "
        "and a quarter of the stack limit in all");
  }
  if (error != 0) return base::FromErrno("start " + spawn.argv[0], error);
  return pid;
}

base::Result<std::string> HelperProgram(const std::string& name) {
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  const std::string dir = DirName(std::string(self, size > 0 ? static_cast<size_t>(size) : 0));
  for (const char* place : {"/libexec/", "/../libexec/", "/../libexec/trainyard/"}) {
    const std::string path = dir + place + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return std::unexpected(
      base::Error(base::ErrorKind::kNotFound,
                  name + " is not beside the program, in libexec/: the installation is broken"));
}

std::vector<ProcessState> ListProcesses() {
  std::vector<ProcessState> out;
  const int64_t page = sysconf(_SC_PAGESIZE);
  DIR* proc = opendir("/proc");
  if (!proc) return out;
  while (const dirent* entry = readdir(proc)) {
    const int pid = atoi(entry->d_name);
    if (pid <= 0) continue;
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!ReadSmallFile(path, text, sizeof text)) continue;
    // The name in parentheses may hold anything, a parenthesis too: the last one closes it.
    const char* rest = strrchr(text, ')');
    if (!rest) continue;
    ProcessState process{.pid = pid};
    long long user = 0, system = 0, resident = 0;
    if (sscanf(rest + 1,
               " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %*d %*d %*d %*d %*d %*d %*u "
               "%*u %lld",
               &process.state, &process.parent, &user, &system, &resident) != 5) {
      continue;
    }
    process.cpu_ticks = user + system;
    process.resident_bytes = resident * page;
    out.push_back(process);
  }
  closedir(proc);
  return out;
}

std::vector<ProcessState> DescendantsOf(pid_t root, const std::vector<ProcessState>& all) {
  std::unordered_map<pid_t, std::vector<const ProcessState*>> children;
  for (const ProcessState& p : all) children[p.parent].push_back(&p);
  std::vector<ProcessState> out;
  std::vector<pid_t> open_ends = {root};
  while (!open_ends.empty()) {
    const pid_t parent = open_ends.back();
    open_ends.pop_back();
    for (const ProcessState* child : children[parent]) {
      out.push_back(*child);
      open_ends.push_back(child->pid);
    }
  }
  return out;
}

std::vector<pid_t> ProcessesWith(const std::string& entry) {
  std::vector<pid_t> out;
  for (const ProcessState& process : ListProcesses()) {
    if (process.pid == getpid() || process.state == 'Z') continue;
    const auto environment = ReadFile("/proc/" + std::to_string(process.pid) + "/environ");
    if (!environment) continue;
    for (std::string_view word : base::Split(*environment, '\0')) {
      if (word != entry) continue;
      out.push_back(process.pid);
      break;
    }
  }
  return out;
}

std::vector<std::string> Environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry; ++entry) out.emplace_back(*entry);
  return out;
}

}  // namespace io
