// Which requests run together. Pure, and not thread-safe: its owner has a lock.
//
// A request waits only while the runtime is busy, so a lone one is never late for the sake of a
// batch; when the runtime is free again, those that have come meanwhile and fit go together, oldest
// first. The busier, the larger the batches. With a `linger` a batch that is not full waits that
// long for others even if the runtime is free. A request that nobody waits for any more is dropped
// before it runs.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "serve/signature.h"
#include "serve/status.h"
#include "tensor/tensor.h"

namespace serve {

using Steady = std::chrono::steady_clock;

// Who waits for an answer. One that has gone, or whose time is over, gets none from the model.
struct Caller {
  std::optional<Steady::time_point> deadline;
  std::function<bool()> gone;  // from any thread, quick; none: stays
};

struct Pending {
  const Signature* signature = nullptr;
  std::vector<tensor::Tensor> inputs;  // by the signature's order
  int64_t rows = 0;                    // 0: runs alone
  Steady::time_point arrived;
  Caller caller;
  std::move_only_function<void(Answer<std::vector<tensor::Tensor>>)> done;
};

class Batcher {
 public:
  struct Limits {
    int64_t rows = 128;  // of a batch; 1: no batching
    Steady::duration linger{0};
    size_t waiting = 1000;  // requests

    bool operator==(const Limits&) const = default;
  };

  explicit Batcher(Limits limits) : limits_(limits) {}

  // False, and nothing is taken, when too many wait already.
  bool Add(Pending& request);
  // Back to the front of all, to run again, or alone.
  void PutBack(std::vector<Pending> requests, bool alone);

  // The next to run together. Empty: none, or not yet: look again then. Requests that nobody waits
  // for are moved to `dropped`.
  std::vector<Pending> Take(Steady::time_point now, std::vector<Pending>& dropped);
  std::optional<Steady::time_point> look_again() const { return look_again_; }
  // All that nobody waits for.
  std::vector<Pending> TakeDropped(Steady::time_point now);

  // All, to be told that nothing will come of them.
  std::vector<Pending> TakeAll();
  size_t waiting() const { return waiting_; }

 private:
  using Queue = std::deque<Pending>;
  std::vector<Pending> TakeNext(Steady::time_point now);
  size_t FitOf(const Queue& queue, int64_t& rows) const;

  Limits limits_;
  std::map<uint32_t, Queue> queues_;  // by the signature's index
  size_t waiting_ = 0;
  std::optional<Steady::time_point> look_again_;
};

// Why nobody waits for this request any more, if so.
std::optional<Status> WhyDropped(const Pending& request, Steady::time_point now);

// Whether two requests of one signature may be put one below the other.
bool Fit(const Pending& a, const Pending& b);

// The outputs of a batch, shared out by rows. Nothing if they have not a row for each of its input.
std::optional<std::vector<std::vector<tensor::Tensor>>> Share(
    const std::vector<tensor::Tensor>& outputs, const std::vector<int64_t>& rows);

}  // namespace serve
