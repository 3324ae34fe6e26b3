#include "serve/runtime.h"

#include <cerrno>
#include <condition_variable>
#include <csignal>

#include <fmt/core.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "io/process.h"

namespace serve {
namespace {

using base::Result;

constexpr int kSocketBuffer = 4 << 20;

std::unexpected<base::Error> Gone(const std::string& text) {
  return std::unexpected(base::Error(base::ErrorKind::kUnavailable, text));
}

Result<> ReadAll(int fd, char* to, size_t size) {
  while (size > 0) {
    const ssize_t got = recv(fd, to, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Gone("the runtime has ended");
    to += got;
    size -= static_cast<size_t>(got);
  }
  return {};
}

bool WriteAll(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<size_t>(put);
  }
  return true;
}

// The kernel counts what it needs for itself as well, at most as much again; two frames may be on
// their way.
size_t SmallFrame(int socket) {
  int bytes = 0;
  socklen_t size = sizeof bytes;
  if (getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, &size) != 0 || bytes < 0) return 0;
  return static_cast<size_t>(bytes) / 4;
}

// Only errors of TensorFlow's go to our standard error, unless the user wants more.
std::vector<std::string> RuntimeEnvironment() {
  std::vector<std::string> env = io::Environment();
  if (!getenv("TF_CPP_MIN_LOG_LEVEL")) env.emplace_back("TF_CPP_MIN_LOG_LEVEL=2");
  return env;
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::Start(const Options& options,
                                                std::function<void()> ended) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return base::FromErrno("a socket for the runtime", errno);
  io::Fd ours(ends[0]), theirs(ends[1]);
  for (const int end : ends) {
    setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
  }
  const pid_t pid =
      TRY(io::Start({.argv = {options.program, options.libraries, std::to_string(options.runs)},
                     .env = RuntimeEnvironment(),
                     .extra = {theirs.get()}}));
  return std::unique_ptr<Runtime>(
      new Runtime(pid, options.runs, std::move(ours), std::move(ended)));
}

Runtime::Runtime(pid_t pid, int runs, io::Fd socket, std::function<void()> ended)
    : pid_(pid),
      runs_(runs),
      socket_(std::move(socket)),
      small_frame_(SmallFrame(socket_.get())),
      ended_(std::move(ended)) {
  reader_ = std::jthread([this] {
    pthread_setname_np(pthread_self(), "answers");
    ReadAnswers();
  });
}

Runtime::~Runtime() { Stop(); }

void Runtime::Stop() {
  if (!reader_.joinable()) return;
  Kill();
  reader_.join();
}

// The reader sees the end of the socket and waits for the process. (Shut down first: whoever is in
// the middle of sending a frame comes back.)
void Runtime::Kill() {
  shutdown(socket_.get(), SHUT_RDWR);
  const std::lock_guard lock(mutex_);
  if (!reaped_) kill(pid_, SIGKILL);
}

Answer<std::string> Runtime::Load(const tensor::Load& load, base::Duration patience) {
  struct Wait {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Answer<std::vector<tensor::Tensor>>> answer;
  };
  const auto wait = std::make_shared<Wait>();
  std::string frame(tensor::kHeadBytes, '\0');
  frame += tensor::EncodeLoad(load);
  Send(tensor::Frame::kLoad, std::move(frame), [wait](auto answer) {
    const std::lock_guard lock(wait->mutex);
    wait->answer = std::move(answer);
    wait->changed.notify_one();
  });
  std::unique_lock lock(wait->mutex);
  if (!wait->changed.wait_for(lock, patience, [&] { return wait->answer.has_value(); }))
    return Refused(Code::kDeadlineExceeded,
                   fmt::format("not loaded within {} s",
                               std::chrono::duration_cast<std::chrono::seconds>(patience).count()));
  const std::vector<tensor::Tensor> tensors = TRY(std::move(*wait->answer));
  if (tensors.size() != 1 || tensors[0].strings.size() != 1)
    return Refused(Code::kInternal, "the runtime loaded something else");
  return tensors[0].strings[0];
}

void Runtime::Run(std::string frame, Done done) {
  Send(tensor::Frame::kRun, std::move(frame), std::move(done));
}

void Runtime::Send(tensor::Frame kind, std::string frame, Done done) {
  uint64_t call = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!over_) {
      call = ++last_call_;
      waiting_.emplace(call, std::move(done));
    }
  }
  if (call == 0) return done(Refused(Code::kAborted, "the runtime of this model has ended"));
  tensor::FillHead(kind, call, frame);
  const std::lock_guard lock(sending_);
  WriteAll(socket_.get(), frame);  // if it fails, the reader finds out and answers
}

Result<> Runtime::ReadAnswer() {
  char bytes[tensor::kHeadBytes];
  TRY(ReadAll(socket_.get(), bytes, sizeof bytes));
  const tensor::Head head = TRY(tensor::DecodeHead({bytes, sizeof bytes}));
  std::string payload;
  payload.resize(head.length);
  TRY(ReadAll(socket_.get(), payload.data(), payload.size()));
  TRY(tensor::CheckPayload(head, payload));
  Answer<std::vector<tensor::Tensor>> answer;
  if (head.frame == tensor::Frame::kDone) {
    answer = TRY(tensor::DecodeTensors(payload));
  } else {
    const tensor::Failure failure = TRY(tensor::DecodeFailure(payload));
    answer = Refused(static_cast<Code>(failure.code), failure.text);
  }
  Done done;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(head.call);
    if (found == waiting_.end()) return Gone("an answer to nothing");
    done = std::move(found->second);
    waiting_.erase(found);
  }
  done(std::move(answer));
  return {};
}

void Runtime::ReadAnswers() {
  while (ReadAnswer()) {
  }
  shutdown(socket_.get(), SHUT_RDWR);
  {
    const std::lock_guard lock(mutex_);
    kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    reaped_ = true;
  }
  ended_();
  std::map<uint64_t, Done> failed;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    failed.swap(waiting_);
  }
  // It reads a call only when it has a thread for it, and in their order.
  int begun = 0;
  for (auto& [call, done] : failed) {
    if (begun++ < runs_) {
      done(Refused(Code::kUnavailable,
                   "the runtime of this model ended while it worked on this request"));
    } else {
      done(Refused(Code::kAborted, "the runtime of this model ended"));
    }
  }
}

}  // namespace serve
