// One version of a model, loaded: its signatures, the runtime that has it, and the requests that
// wait for it.
//
// Submit may be called from any thread; `done` is called once for each request, on a thread of the
// runtime's or, when it is refused at once, on the caller's. A runtime that crashes costs the batch
// it worked on: the others wait for the next one, which is started at once by a thread of its own,
// named "keeper". That thread also ends a runtime that hangs. The owner (models.h) calls Stop before
// it lets go: the last reference may belong to a request whose answer is still being delivered by a
// thread that the destructor would otherwise have to wait for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/batcher.h"
#include "serve/counters.h"
#include "serve/runtime.h"
#include "serve/signature.h"
#include "serve/snapshot.h"

namespace serve {

// What holds for all models of a server.
struct Engine {
  std::string program;    // trainyard-runtime
  std::string libraries;  // of TensorFlow
  int threads = 0;        // of TensorFlow, for one run; 0: as the model's size suggests
  int runs = 1;           // at a time, of one version
  Batcher::Limits limits;
  bool batch_all = false;  // the user has asked for batches: of signatures that mix rows as well
  base::Duration load_time = std::chrono::minutes(5);
  base::Duration run_time = std::chrono::minutes(1);  // a run that takes longer hangs
  base::Duration check_time = std::chrono::seconds(10);  // to find out whether a signature batches
};

class Servable : public std::enable_shared_from_this<Servable> {
 public:
  using Done = Runtime::Done;

  // Loads and warms up; some seconds.
  static Answer<std::shared_ptr<Servable>> Load(const Engine& engine, std::string model,
                                                int64_t version, const std::string& directory,
                                                Counters& counters);
  ~Servable();
  // Ends the runtime and every thread, and answers all requests with an error. Not on a thread that
  // answers requests.
  void Stop();

  const std::string& model() const { return model_; }
  int64_t version() const { return version_; }
  const Signatures& signatures() const { return signatures_; }
  const std::string& tensorflow() const { return tensorflow_; }

  // `inputs` have been checked: `rows` is what CheckInputs said.
  void Submit(const Signature& signature, std::vector<tensor::Tensor> inputs,
              std::optional<int64_t> rows, Caller caller, Done done);

  // Counts a request to a signature of it that was refused before Submit.
  void CountRefused(const Signature& signature, Code code) const;

  // Whether its runtime has ended and cannot be started again, because somebody has written into
  // the model's files. What is there now has to be loaded as a new one.
  bool overwritten() const;

  // Whether a runtime is there to answer.
  bool ready() const;

 private:
  Servable(const Engine& engine, std::string model, int64_t version, Counters& counters);
  Answer<> StartRuntime();
  Answer<> TryToStart();
  bool CheckRows(Runtime& runtime);
  void Ended();
  void Keep();
  void StartAgain();
  void Dispatch();
  void Send(Runtime& runtime, std::vector<Pending> batch);
  void Drop(std::vector<Pending> requests);
  void Fail(Pending& request, Status status);
  void Finish(std::vector<Pending> batch, Answer<std::vector<tensor::Tensor>> answer);

  const Engine& engine_;
  const std::string model_;
  const int64_t version_;
  Signatures signatures_;
  Snapshot files_;
  std::string directory_;  // of the model's files as they were
  int threads_ = 1;
  std::string tensorflow_;
  Counters::OfModel& counts_;

  mutable std::mutex mutex_;  // what follows
  Batcher batcher_;
  std::shared_ptr<Runtime> runtime_;  // none while it is started again
  int running_ = 0;                   // frames that it works on
  Steady::time_point busy_since_;
  bool broken_ = false;
  bool overwritten_ = false;
  bool stopping_ = false;
  int failures_ = 0;  // of starting again
  Steady::time_point retry_;
  std::vector<std::shared_ptr<Runtime>> ended_;  // until nobody has them any more
  std::shared_ptr<Runtime> starting_;
  std::condition_variable changed_;  // for the keeper

  std::atomic<bool> small_ = false;  // the last frame
  std::atomic<bool> quick_ = false;  // the last run
  std::jthread keeper_;
};

}  // namespace serve
