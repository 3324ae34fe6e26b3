// `board`: TensorBoard of the job's own Python over the logs of jobs, for as long as the command
// runs.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/job_dir.h"
#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/cluster_board.h"
#include "cli/commands.h"
#include "cli/local_jobs.h"
#include "cli/progress_line.h"
#include "cli/python.h"
#include "cli/refuse.h"
#include "cli/sweep_store.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/process.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;
using namespace std::chrono_literals;

constexpr base::Duration kLookAgain = 2s;
constexpr int kEndsWithinMs = 5000;
constexpr size_t kMostWords = 16 << 10;  // of what it says, the last

// TensorBoard that ends with whoever started it, however that ends, and takes its directory of
// links with it.
constexpr std::string_view kProgram = R"PYTHON(
import ctypes, os, runpy, shutil, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
try:
    if os.getppid() == int(sys.argv.pop(1)):
        runpy.run_module('tensorboard.main', run_name='__main__', alter_sys=True)
finally:
    shutil.rmtree(sys.argv[sys.argv.index('--logdir') + 1], ignore_errors=True)
)PYTHON";

using Runs = std::map<std::string, std::string>;  // by name, the directory of its event files

// As TensorBoard counts them: each directory with event files is a run, such as `train` and
// `validation` of a Keras job, or a trial of a sweep. A job that has none yet is to have one.
size_t CountRuns(const Runs& runs) {
  namespace fs = std::filesystem;
  size_t count = 0;
  for (const auto& [name, logs] : runs) {
    std::set<fs::path> with_events;
    std::error_code error;
    for (auto it = fs::recursive_directory_iterator(logs, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      if (it->path().filename().string().contains("tfevents"))
        with_events.insert(it->path().parent_path());
    }
    count += std::max<size_t>(1, with_events.size());
  }
  return count;
}

struct Wish {
  Runs runs;
  std::string python;    // of the newest job; empty: of none
  bool all_jobs = true;  // those that are still to come as well
};

void Add(const backend::local::JobDir& dir, const std::string& name, Wish& wish) {
  wish.runs[name] = dir.File("tensorboard");
  if (auto run = dir.LoadRun(); run && !run->python.empty()) wish.python = run->python;
}

void AddAllJobs(const std::string& name_space, Wish& wish) {
  for (const backend::local::Listed& listed : backend::local::ListJobs(name_space)) {
    const std::string logs = listed.dir.File("tensorboard");
    if (!wish.runs.contains(listed.name) && !io::ListDir(logs).empty())
      Add(listed.dir, listed.name, wish);
  }
}

// The trials of a sweep, each a run of its own; false: there is no such sweep.
bool AddSweep(const std::string& name_space, const std::string& name, Wish& wish) {
  const auto sweep = SweepStore::Open(name_space, name);
  if (!sweep) return false;
  wish.runs[name] = sweep->path();
  const auto first = FindLocalJob(sweep->plan().job_space, sweep->JobName(0));
  if (const auto run = first ? first->dir.LoadRun() : std::unexpected(first.error())) {
    wish.python = run->python;
  }
  return true;
}

Result<Wish> WishFor(const Args& args) {
  Wish out{.all_jobs = args.operands().empty()};
  for (const std::string& word : args.operands()) {
    auto job = FindLocalJob(args.name_space(), word);
    if (job) {
      Add(job->dir, job->name, out);
    } else if (AddSweep(args.name_space(), word, out)) {
      continue;
    } else if (io::IsDirectory(word)) {
      out.runs[io::BaseName(io::AbsolutePath(word))] = io::AbsolutePath(word);
    } else {
      return std::unexpected(job.error());
    }
  }
  if (!out.all_jobs) return out;
  AddAllJobs(args.name_space(), out);
  if (out.runs.empty()) {
    return base::Invalid(fmt::format(
        "no job in namespace {} has written anything for TensorBoard: a script does so with "
        "tf.keras.callbacks.TensorBoard(os.environ['TRAINYARD_LOG_DIR'])",
        args.name_space()));
  }
  return out;
}

// A directory of links, one a run; gone with it.
class LogDir {
 public:
  static Result<LogDir> Make() {
    std::string path = "/tmp/trainyard-board-XXXXXX";
    if (!mkdtemp(path.data())) return base::FromErrno("a directory in /tmp", errno);
    return LogDir(std::move(path));
  }
  LogDir(LogDir&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  LogDir& operator=(LogDir&&) = delete;
  ~LogDir() {
    if (!path_.empty()) base::IgnoreError(io::RemoveTree(path_), "it is in /tmp");
  }

  const std::string& path() const { return path_; }

  Result<> Show(const Runs& runs) const {
    for (const auto& [name, logs] : runs) {
      const std::string link = path_ + "/" + name;
      if (symlink(logs.c_str(), link.c_str()) != 0 && errno != EEXIST)
        return base::FromErrno(link, errno);
    }
    return {};
  }

 private:
  explicit LogDir(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// The process, and what it says.
class TensorBoard {
 public:
  static Result<TensorBoard> Start(const std::string& python, const std::string& logs,
                                   const std::string& port) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return base::FromErrno("pipe", errno);
    TensorBoard out;
    out.words_ = io::Fd(ends[0]);
    const io::Fd write_end(ends[1]);
    std::vector<std::string> env = io::Environment();
    env.push_back("PYTHONUNBUFFERED=1");
    out.pid_ =
        TRY(io::Start({.argv = {python, "-c", std::string(kProgram), std::to_string(getpid()),
                                "--logdir", logs, "--host", "127.0.0.1", "--port", port},
                       .env = std::move(env),
                       .output = write_end.get()}));
    out.process_ = io::Fd(static_cast<int>(syscall(SYS_pidfd_open, out.pid_, 0)));
    return out;
  }
  TensorBoard(TensorBoard&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        words_(std::move(other.words_)),
        process_(std::move(other.process_)),
        said_(std::move(other.said_)) {}
  TensorBoard& operator=(TensorBoard&&) = delete;
  // Asked to end, and made to if it does not.
  ~TensorBoard() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGTERM);
    pollfd ended{.fd = process_.get(), .events = POLLIN, .revents = 0};
    if (poll(&ended, 1, kEndsWithinMs) <= 0) kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  // Waits for something to happen; false: it has ended.
  bool Wait(base::Duration longest) {
    pollfd waits[] = {{.fd = words_.get(), .events = POLLIN, .revents = 0},
                      {.fd = process_.get(), .events = POLLIN, .revents = 0}};
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(longest).count();
    if (poll(waits, 2, static_cast<int>(ms)) <= 0) return true;
    char bytes[4096];
    const ssize_t count = waits[0].revents != 0 ? read(words_.get(), bytes, sizeof bytes) : 0;
    if (count > 0) said_.append(bytes, static_cast<size_t>(count));
    if (said_.size() > kMostWords) said_.erase(0, said_.size() - kMostWords);
    return count > 0 || waits[1].revents == 0;
  }

  // Where it listens, once it says so: "TensorBoard 2.15.2 at http://127.0.0.1:6006/ (Press …".
  std::string Url() const {
    const size_t at = said_.find(" at http://");
    const size_t end = at == std::string::npos ? at : said_.find_first_of(" \n", at + 4);
    return end == std::string::npos ? "" : said_.substr(at + 4, end - at - 4);
  }

  std::string LastWords() const {
    std::string last;
    for (std::string_view line : base::Split(said_, '\n')) {
      if (!base::Trim(line).empty()) last = base::Trim(line);
    }
    return last;
  }

 private:
  TensorBoard() = default;

  pid_t pid_ = 0;
  io::Fd words_;
  io::Fd process_;
  std::string said_;
};

Result<> Run(const Args& args, Wish wish, const std::string& python) {
  const LogDir logs = TRY(LogDir::Make());
  TRY(logs.Show(wish.runs));
  TensorBoard board = TRY(TensorBoard::Start(python, logs.path(), args.Get("port", "default")));
  bool told = false;
  ProgressLine line;
  for (base::Time next = io::Now(); !Interrupted();) {
    if (!board.Wait(200ms)) {
      return std::unexpected(
          Error(ErrorKind::kUnavailable, "TensorBoard has ended: " + board.LastWords()));
    }
    if (const std::string url = board.Url(); !told && !url.empty()) {
      TellBoard(args, url, CountRuns(wish.runs));
      told = true;
    }
    if (!told) line.Show("waiting for TensorBoard");
    if (!wish.all_jobs || io::Now() < next) continue;
    AddAllJobs(args.name_space(), wish);
    base::IgnoreError(logs.Show(wish.runs), "it is just ending, and has taken its links along");
    next = io::Now() + kLookAgain;
  }
  return {};
}

int BoardHere(const Args& args) {
  for (const char* flag : {"image", "keep"}) {
    if (args.Has(flag))
      return Refuse(fmt::format("--{} is for clusters: with --on kubernetes", flag));
  }
  auto wish = WishFor(args);
  if (!wish) return Refuse(wish.error());
  auto python = args.Has("python") || wish->python.empty() ? ChoosePython(args) : wish->python;
  if (!python) return Refuse(python.error());
  if (AskPython(*python, "import importlib.util as u; print(u.find_spec('tensorboard'))")
          .starts_with("None"))
    return Refuse(
        fmt::format("no TensorBoard in this Python: {} -m pip install tensorboard", *python));
  CatchInterrupts();
  auto done = Run(args, *std::move(wish), *python);
  return done ? 0 : Fail(done.error());
}

}  // namespace

void TellBoard(const Args& args, const std::string& url, size_t runs) {
  if (args.json()) {
    fmt::print("{}\n", base::CompactJson(base::JsonObject{{"url", url}}));
    return;
  }
  fmt::print("TensorBoard at {} · {} run{} · Ctrl-C ends it\n", url, runs, runs == 1 ? "" : "s");
}

int BoardCommand(const Args& args) {
  if (auto port = args.Number("port", 0, 1, 65535); !port) return Refuse(port.error());
  auto context = ContextOf(args);
  if (!context) return Refuse(context.error());
  return *context ? BoardThere(args, **context) : BoardHere(args);
}

}  // namespace cli
