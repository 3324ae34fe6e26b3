// A runtime process (runtime_main.cc) as the server sees it: started with one model, asked by
// frames, gone when this object goes.
//
// Run may be called from any thread; answers come on the runtime's own thread, named "answers". A
// runtime that ends, or answers what is no frame, is done for: `ended` is called once, on that
// thread, and then what it may have been working on fails with kUnavailable, and what it had not
// begun with kAborted. Destroyed on any other thread, or on that one after Stop.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "base/time.h"
#include "io/files.h"
#include "serve/status.h"
#include "tensor/frame.h"

namespace serve {

class Runtime {
 public:
  struct Options {
    std::string program;    // trainyard-runtime
    std::string libraries;  // the directory of the Python package
    tensor::Load load;
    int runs = 1;  // at a time
  };
  using Done = std::move_only_function<void(Answer<std::vector<tensor::Tensor>>)>;

  // Starts the process; the model is loaded when `loaded` has been told so.
  static base::Result<std::unique_ptr<Runtime>> Start(const Options& options,
                                                      std::function<void()> ended);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Waits until the model is loaded: the version of TensorFlow.
  Answer<std::string> Load(const tensor::Load& load, base::Duration patience);

  // `frame` has a run's payload behind room for the head.
  void Run(std::string frame, Done done);
  // A frame of up to this size can be sent without waiting while the runtime works on another.
  size_t small_frame() const { return small_frame_; }

  // Ends the process, as a crash would.
  void Kill();
  // Kills the process and waits until every caller has its answer. Called by one thread, which must
  // not be the one that the answers come on.
  void Stop();
  pid_t pid() const { return pid_; }

 private:
  Runtime(pid_t pid, int runs, io::Fd socket, std::function<void()> ended);
  void Send(tensor::Frame kind, std::string frame, Done done);
  void ReadAnswers();
  base::Result<> ReadAnswer();

  const pid_t pid_;
  const int runs_;
  const io::Fd socket_;
  const size_t small_frame_;
  std::function<void()> ended_;
  std::mutex sending_;  // one frame at a time
  std::mutex mutex_;    // what follows
  std::map<uint64_t, Done> waiting_;
  uint64_t last_call_ = 0;
  bool reaped_ = false;  // the pid is not ours any more
  bool over_ = false;    // nothing is sent any more
  std::jthread reader_;
};

}  // namespace serve
