// trainyard-guard: runs one replica and lets nothing of it survive.
//
//   trainyard-guard --record FILE [--directory DIR] [--cgroup DIR]...
//                   [--memory-limit BYTES [--poll]] [--descriptors N] [--mount FROM TO]...
//                   -- PROGRAM [ARG]...
//   trainyard-guard --check --mount FROM TO...
//   trainyard-guard --leaf DIR
//
// The supervisor starts one guard a replica; the guard starts the program. Descriptor 3 is a socket
// to the supervisor. The guard is the subreaper of the program: whatever the program starts, in
// whatever session or process group, is a descendant of the guard, and orphans come to it. So "all
// processes of this replica" is a well-defined set that needs no cgroup and no root:
//   - when the program ends, what it left behind is killed;
//   - when the supervisor asks (T milliseconds: terminate with grace; K: kill), all of it gets the
//   signal;
//   - when the supervisor is gone (the socket closes), all of it is killed at once.
//
// A guard may be killed as well, and together with the supervisor. So it is two processes, one the
// parent of the other: the keeper above does nothing but wait, the guard proper below does the
// work. Killed alone, the keeper is missed by the guard, which ends the replica; killed alone, the
// guard leaves its orphans to the keeper, a subreaper too, which ends them; the program itself dies
// by its parent-death signal. When both are killed, the orphans are the supervisor's. Only who
// kills all three at one stroke leaves something behind, for the next supervisor to end.
//
// How it ended is written to FILE (atomically, so that a later supervisor finds it) and to the
// socket:
//   ended status=<wait status> when=<microseconds> stopped=<0|1> lost=<0|1|2> oom=<0|1>
//   peak=<bytes>
//
// With --check it only tries the mounts: exit status 0, or 1 with a line that says why not. With
// --leaf it runs no program: it removes the supervisor's own cgroup after use (leaf.h).
//
// Linked statically without iostreams or allocation in the loop: one guard costs a few hundred
// kilobytes.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "leaf.h"
#include "mounts.h"

namespace {

constexpr int kControl = 3;
constexpr int kJobLock =
    4;  // held until we end: nobody takes the job over while anything of it lives
constexpr int kMaxCgroups = 4;
constexpr int kMaxProcesses = 131072;  // untouched pages cost nothing
constexpr int kPollMemoryMs = 100;
constexpr int kMaxMounts = 64;

struct Options {
  const char* record = nullptr;
  const char* directory = nullptr;  // the program's; ours if it is not given
  const char* cgroups[kMaxCgroups] = {};
  int cgroup_count = 0;
  const char* leaf = nullptr;  // the supervisor's own cgroup
  long long memory_limit = 0;
  bool poll_memory = false;
  unsigned long long descriptors = 0;  // the program's soft limit; 0: ours
  long long clock_offset = 0;          // the supervisor's time minus CLOCK_BOOTTIME, microseconds
  guard::Mount mounts[kMaxMounts] = {};
  int mount_count = 0;
  bool check = false;
  char** program = nullptr;
};

// The supervisor's time, whatever happens to the wall clock meanwhile.
long long NowMicros(const Options& options) {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return options.clock_offset + now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
}

long long MonotonicMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1'000'000;
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const char* arg = argv[i];
    if (strcmp(arg, "--") == 0) {
      options.program = argv + i + 1;
      break;
    }
    if (strcmp(arg, "--poll") == 0) {
      options.poll_memory = true;
    } else if (strcmp(arg, "--check") == 0) {
      options.check = true;
    } else if (strcmp(arg, "--mount") == 0 && i + 2 < argc && options.mount_count < kMaxMounts) {
      options.mounts[options.mount_count++] = {argv[i + 1], argv[i + 2]};
      i += 2;
    } else if (strcmp(arg, "--record") == 0 && i + 1 < argc) {
      options.record = argv[++i];
    } else if (strcmp(arg, "--directory") == 0 && i + 1 < argc) {
      options.directory = argv[++i];
    } else if (strcmp(arg, "--leaf") == 0 && i + 1 < argc) {
      options.leaf = argv[++i];
    } else if (strcmp(arg, "--memory-limit") == 0 && i + 1 < argc) {
      options.memory_limit = atoll(argv[++i]);
    } else if (strcmp(arg, "--clock-offset") == 0 && i + 1 < argc) {
      options.clock_offset = atoll(argv[++i]);
    } else if (strcmp(arg, "--descriptors") == 0 && i + 1 < argc) {
      options.descriptors = strtoull(argv[++i], nullptr, 10);
    } else if (strcmp(arg, "--cgroup") == 0 && i + 1 < argc && options.cgroup_count < kMaxCgroups) {
      options.cgroups[options.cgroup_count++] = argv[++i];
    } else {
      fprintf(stderr, "trainyard-guard: unknown argument %s\n", arg);
      exit(2);
    }
  }
  if (!options.check && !options.leaf &&
      (!options.record || !options.program || !options.program[0])) {
    fprintf(stderr, "trainyard-guard: started by trainyard, not by hand\n");
    exit(2);
  }
  return options;
}

// ---- Descendants

struct Process {
  int pid, parent;
};

Process processes[kMaxProcesses];  // all there are, by pid
int process_count = 0;

// The parent of a process, from /proc/PID/stat; 0 when it is gone. A zombie counts: its parent has
// to reap it.
int ParentOf(int pid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = 0;
  // The name in parentheses may hold anything, a parenthesis too: the last one closes it.
  const char* close_paren = strrchr(text, ')');
  int parent = 0;
  if (!close_paren || sscanf(close_paren + 1, " %*c %d", &parent) != 1) return 0;
  return parent;
}

void ListProcesses() {
  process_count = 0;
  DIR* proc = opendir("/proc");
  if (!proc) return;
  while (const dirent* entry = readdir(proc)) {
    const int pid = atoi(entry->d_name);
    if (pid <= 0 || process_count == kMaxProcesses) continue;
    if (const int parent = ParentOf(pid)) processes[process_count++] = {pid, parent};
  }
  closedir(proc);
  std::sort(processes, processes + process_count,
            [](const Process& a, const Process& b) { return a.pid < b.pid; });
}

int ListedParent(int pid) {
  Process* const end = processes + process_count;
  Process* const found = std::lower_bound(
      processes, end, pid, [](const Process& process, int wanted) { return process.pid < wanted; });
  return found != end && found->pid == pid ? found->parent : 0;
}

bool IsDescendant(const Process& process) {
  const int self = getpid();
  // The list is no snapshot: with a pid used anew it might hold a circle.
  int steps = 0;
  for (int up = process.parent; up > 1 && steps < process_count; up = ListedParent(up), ++steps) {
    if (up == self) return true;
  }
  return false;
}

void SignalDescendants(int signal) {
  ListProcesses();
  for (int i = 0; i < process_count; ++i) {
    if (IsDescendant(processes[i])) kill(processes[i].pid, signal);
  }
}

long long ResidentBytes() {
  ListProcesses();
  const long long page = sysconf(_SC_PAGESIZE);
  long long total = 0;
  for (int i = 0; i < process_count; ++i) {
    if (!IsDescendant(processes[i])) continue;
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/%d/statm", processes[i].pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    const ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0) continue;
    text[size] = 0;
    long long resident = 0;
    if (sscanf(text, "%*d %lld", &resident) == 1) total += resident * page;
  }
  return total;
}

// ---- Cgroups

// The number after `key` in a cgroup file, or the whole file when key is null; -1 when there is
// none.
long long CgroupNumber(const char* dir, const char* file, const char* key) {
  char path[4096], text[4096];
  snprintf(path, sizeof path, "%s/%s", dir, file);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return -1;
  text[size] = 0;
  if (!key) return atoll(text);
  for (char* line = text; line;) {
    const size_t length = strlen(key);
    if (strncmp(line, key, length) == 0 && line[length] == ' ') return atoll(line + length);
    char* next = strchr(line, '\n');
    line = next ? next + 1 : nullptr;
  }
  return -1;
}

// The kernel killed somebody in here for lack of memory: v1 tells in memory.oom_control, v2 in
// memory.events.
bool KernelKilledForMemory(const Options& options) {
  for (int i = 0; i < options.cgroup_count; ++i) {
    if (CgroupNumber(options.cgroups[i], "memory.oom_control", "oom_kill") > 0) return true;
    if (CgroupNumber(options.cgroups[i], "memory.events", "oom_kill") > 0) return true;
  }
  return false;
}

long long CgroupPeak(const Options& options) {
  for (int i = 0; i < options.cgroup_count; ++i) {
    for (const char* file : {"memory.max_usage_in_bytes", "memory.peak"}) {
      const long long peak = CgroupNumber(options.cgroups[i], file, nullptr);
      if (peak > 0) return peak;
    }
  }
  return 0;
}

void RemoveCgroups(const Options& options) {
  for (int i = 0; i < options.cgroup_count; ++i) {
    // The kernel takes a moment to empty a group whose last process was just reaped.
    for (int tries = 0; tries < 200; ++tries) {
      if (rmdir(options.cgroups[i]) == 0 || errno == ENOENT) break;
      poll(nullptr, 0, 10);
    }
  }
}

// ---- The program

[[noreturn]] void RunProgram(const Options& options, int guard, int report, const sigset_t& mask) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guard) _exit(127);
  for (int i = 0; i < options.cgroup_count; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%s/cgroup.procs", options.cgroups[i]);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1) {
      dprintf(report, "join %s: %s", options.cgroups[i], strerror(errno));
      _exit(127);
    }
    close(fd);
  }
  close(kControl);
  rlimit limit{};
  if (options.descriptors && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = options.descriptors;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  const int null = open("/dev/null", O_RDONLY);
  if (null > 0) {
    dup2(null, 0);
    close(null);
  }
  if (options.directory && chdir(options.directory) != 0) {
    dprintf(report, "its working directory %s: %s", options.directory, strerror(errno));
    _exit(127);
  }
  if (const char* why = guard::EnterMounts(options.mounts, options.mount_count)) {
    dprintf(report, "%s", why);
    _exit(127);
  }
  // A change of credentials, as a user namespace is one, may have cleared it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guard) _exit(127);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(options.program[0], options.program);
  dprintf(report, "%s: %s", options.program[0], strerror(errno));
  _exit(127);
}

struct Run {
  const Options& options;
  int keeper = 0;
  int program = 0;
  bool program_ended = false;
  int status = 0;
  long long when = 0;
  bool stopped = false;
  int lost = 0;  // 1: killed for want of the supervisor, 2: of the keeper
  bool out_of_memory = false;
  long long peak = 0;
  long long kill_at = -1;  // monotonic ms
  bool control_open = true;
};

// Reaps what has ended; true when no child is left.
bool Reap(Run& run) {
  while (true) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0) return errno == ECHILD;
    if (pid == 0) return false;
    if (pid == run.program) {
      run.program_ended = true;
      run.status = status;
      run.when = NowMicros(run.options);
    }
  }
}

void ReadControl(Run& run) {
  char text[64];
  const ssize_t size = read(kControl, text, sizeof text - 1);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) {
    run.control_open = false;
    if (!run.program_ended && !run.lost) run.lost = 1;
    run.kill_at = MonotonicMs();
    return;
  }
  text[size] = 0;
  run.stopped = true;
  if (strchr(text, 'K')) {  // it may have come in one piece with a T before it
    run.kill_at = MonotonicMs();
  } else if (text[0] == 'T' && run.kill_at < 0) {
    run.kill_at = MonotonicMs() + atoll(text + 1);
    SignalDescendants(SIGTERM);
    SignalDescendants(SIGCONT);  // a stopped process would not see it
  }
}

void WriteRecord(const Run& run) {
  char text[256], temporary[4096];
  const int size =
      snprintf(text, sizeof text, "ended status=%d when=%lld stopped=%d lost=%d oom=%d peak=%lld\n",
               run.status, run.when, run.stopped, run.lost, run.out_of_memory, run.peak);
  snprintf(temporary, sizeof temporary, "%s.part", run.options.record);
  const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd >= 0) {
    if (write(fd, text, static_cast<size_t>(size)) == size) rename(temporary, run.options.record);
    close(fd);
  }
  send(kControl, text, static_cast<size_t>(size), MSG_NOSIGNAL);
}

void Loop(Run& run, int signals) {
  while (!Reap(run)) {
    const long long now = MonotonicMs();
    if (run.program_ended && run.kill_at < 0) run.kill_at = now;  // orphans do not stay
    int timeout = -1;
    if (run.kill_at >= 0) {
      timeout = static_cast<int>(run.kill_at > now ? run.kill_at - now : 5);
      if (run.kill_at <= now) SignalDescendants(SIGKILL);
    } else if (run.options.poll_memory) {
      timeout = kPollMemoryMs;
      const long long resident = ResidentBytes();
      if (resident > run.peak) run.peak = resident;
      if (resident > run.options.memory_limit) {
        run.out_of_memory = true;
        run.kill_at = now;
        continue;
      }
    }
    pollfd fds[2] = {{signals, POLLIN, 0}, {kControl, POLLIN, 0}};
    if (poll(fds, run.control_open ? 2 : 1, timeout) > 0) {
      signalfd_siginfo drained;
      if (fds[0].revents & POLLIN) (void)!read(signals, &drained, sizeof drained);
      if (getppid() != run.keeper && !run.lost && !run.program_ended) {
        run.lost = 2;
        run.kill_at = MonotonicMs();
      }
      if (run.control_open && fds[1].revents) ReadControl(run);
    }
  }
}

// The guard proper: runs the program and returns the exit status of the guard.
int Guard(const Options& options, int keeper) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != keeper) return 2;
  sigset_t awaited, none;
  sigemptyset(&none);
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, SIGTERM);  // the keeper may be gone
  const int signals = signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK);

  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return 2;
  Run run{options, keeper};
  const int guard = getpid();
  run.program = fork();
  if (run.program == 0) RunProgram(options, guard, report[1], none);
  close(report[1]);
  if (run.program < 0) {
    dprintf(kControl, "failed fork: %s\n", strerror(errno));
    return 2;
  }
  // The pipe closes when the program runs; words in it say why it could not.
  char words[512];
  const ssize_t size = read(report[0], words, sizeof words - 1);
  close(report[0]);
  if (size > 0) {
    words[size] = 0;
    waitpid(run.program, nullptr, 0);
    RemoveCgroups(options);
    dprintf(kControl, "failed %s\n", words);
    return 2;
  }
  dprintf(kControl, "started %d\n", run.program);
  Loop(run, signals);
  if (KernelKilledForMemory(options)) run.out_of_memory = true;
  if (const long long peak = CgroupPeak(options)) run.peak = peak;
  WriteRecord(run);
  RemoveCgroups(options);
  return 0;
}

// What a killed guard left to us.
void EndOrphans(const Options& options) {
  while (true) {
    SignalDescendants(SIGKILL);
    pid_t reaped = 0;
    while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (reaped < 0) break;
    poll(nullptr, 0, 5);
  }
  RemoveCgroups(options);
}

// Waits for the guard, and ends what it leaves behind if it was killed.
int Keep(const Options& options, int guard) {
  close(kControl);  // so that its end is the guard's
  int status = 0;
  while (waitpid(guard, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) EndOrphans(options);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  if (options.check) {
    const char* why = guard::EnterMounts(options.mounts, options.mount_count);
    if (why) printf("%s\n", why);
    return why ? 1 : 0;
  }
  // The terminal's signals are the supervisor's to handle; ours come through the socket.
  sigset_t blocked;
  sigfillset(&blocked);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  if (options.leaf) {
    guard::RemoveLeafAfterUse(options.leaf, kControl);
    return 0;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  fcntl(kControl, F_SETFD, FD_CLOEXEC);
  fcntl(kJobLock, F_SETFD, FD_CLOEXEC);

  const int keeper = getpid();
  const pid_t guard = fork();
  if (guard < 0) {
    dprintf(kControl, "failed fork: %s\n", strerror(errno));
    return 2;
  }
  return guard == 0 ? Guard(options, keeper) : Keep(options, guard);
}
