// trainyard-runtime: one SavedModel in TensorFlow, behind a socket.
//
//   trainyard-runtime LIBRARIES THREADS      the socket is descriptor 3
//
// LIBRARIES is the directory of a Python's tensorflow package. The server starts one runtime for
// each version of a model that it has loaded, so a model that crashes or hangs takes nothing with
// it, and its memory is given back to the last byte when its process ends.
//
// The first frame is a load; after it THREADS threads take turns: one reads a call, lets the next
// one read, runs it and writes the answer. Nothing is handed from thread to thread. The end of the
// socket is the end of the process: nobody outlives the server.
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <malloc.h>
#include <unistd.h>

#include "base/strings.h"
#include "runtime/model.h"
#include "runtime/tensorflow.h"
#include "tensor/frame.h"

namespace {

using tensor::Failure;
using tensor::Frame;

constexpr int kSocket = 3;
constexpr int kKeptMemory = 8 << 20;
constexpr int32_t kFailedPrecondition = 9;
constexpr int32_t kInternal = 13;

// False at the end of the stream.
bool ReadAll(char* to, size_t size) {
  while (size > 0) {
    const ssize_t got = read(kSocket, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool WriteAll(const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = write(kSocket, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<size_t>(put);
  }
  return true;
}

struct Call {
  tensor::Head head;
  std::string payload;
};

const pid_t server = getppid();
std::string temporary;  // a directory of links that the server has made for us

// The server removes the directory, unless it was killed.
[[noreturn]] void End() {
  // The kernel closes the sockets of a process that dies before it gives away its children. A server
  // that lives ends us meanwhile.
  for (int i = 0; i < 1000 && getppid() == server; ++i) usleep(1000);
  if (temporary.empty() || getppid() == server) _exit(0);
  std::error_code ignored;
  std::vector<std::filesystem::path> directories = {temporary};
  for (auto it = std::filesystem::recursive_directory_iterator(temporary, ignored);
       !ignored && it != std::filesystem::recursive_directory_iterator(); it.increment(ignored)) {
    if (it->is_symlink(ignored)) {
      unlink(it->path().c_str());
    } else if (it->is_directory(ignored)) {
      directories.push_back(it->path());
    }
  }
  while (!directories.empty()) {
    rmdir(directories.back().c_str());
    directories.pop_back();
  }
  _exit(0);
}

// The next call; no call, no server: the process ends.
Call Next() {
  char head[tensor::kHeadBytes];
  if (!ReadAll(head, sizeof head)) End();
  const auto decoded = tensor::DecodeHead({head, sizeof head});
  if (!decoded) _exit(3);
  Call call{.head = *decoded};
  // The size that the function is given is not used: libstdc++ 12 gives it the capacity.
  const size_t length = decoded->length;
  call.payload.resize_and_overwrite(length, [length](char* to, size_t) {
    if (!ReadAll(to, length)) End();
    return length;
  });
  if (!tensor::CheckPayload(call.head, call.payload)) _exit(3);
  return call;
}

std::mutex writing;

void Answer(uint64_t call, const std::expected<std::string, Failure>& answer) {
  const std::string bytes =
      answer ? tensor::Encode(Frame::kDone, call, *answer)
             : tensor::Encode(Frame::kFailed, call, tensor::EncodeFailure(answer.error()));
  const std::lock_guard lock(writing);
  if (!WriteAll(bytes)) End();
}

std::expected<std::string, Failure> RunOne(const runtime::Model& model, const Call& call) {
  if (call.head.frame != Frame::kRun)
    return std::unexpected(Failure{kInternal, "a call that is no run"});
  const auto run = tensor::DecodeRun(call.payload);
  if (!run) return std::unexpected(Failure{kInternal, run.error().text()});
  return model.Run(*run);
}

std::mutex reading;

[[noreturn]] void Serve(const runtime::Model& model) {
  while (true) {
    Call call;
    {
      const std::lock_guard lock(reading);
      call = Next();
    }
    Answer(call.head.call, RunOne(model, call));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "trainyard-runtime: started by trainyard, not by hand\n");
    return 2;
  }
  // Memory of one call is for the next, and not given back to be taken anew page by page.
  mallopt(M_MMAP_THRESHOLD, kKeptMemory / 2);
  mallopt(M_TRIM_THRESHOLD, kKeptMemory);
  const Call first = Next();
  const auto load = tensor::DecodeLoad(first.payload);
  if (first.head.frame != Frame::kLoad || !load) return 3;
  if (load->temporary) temporary = load->directory;
  const auto tensorflow = runtime::OpenTensorFlow(argv[1]);
  if (!tensorflow) {
    Answer(first.head.call,
           std::unexpected(Failure{kFailedPrecondition, tensorflow.error().text()}));
    return 1;
  }
  runtime::Model model(*tensorflow);
  if (const auto loaded = model.Load(*load); !loaded) {
    Answer(first.head.call, std::unexpected(loaded.error()));
    _exit(1);
  }
  const tensor::Tensor version{.type = tensor::Type::kString, .strings = {tensorflow->Version()}};
  Answer(first.head.call, tensor::EncodeTensors({&version, 1}));

  std::vector<std::jthread> others;
  for (int64_t i = 1; i < base::ParseInt(argv[2]).value_or(1); ++i)
    others.emplace_back([&] { Serve(model); });
  Serve(model);
}
