// One call for shards, held by the master for as long as it likes.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "master/call.h"
#include "master/master.h"

namespace master {

// `fill` makes the response of the answer. The call is to be watched.
inline void TakeFor(Master& master, Call& call, Ask ask, std::function<grpc::Status(Taken)> fill) {
  struct Held {
    uint64_t ticket = 0;
    std::vector<int32_t> given;
  };
  const auto held = std::make_shared<Held>();
  // Both are told on the queue's thread, which is this one: not before this function returns.
  call.cancelled = [&master, held] { master.Cancel(held->ticket); };
  if (!ask.ours)
    call.over = [&master, held, number = ask.number](bool cancelled) {
      if (cancelled) master.Lost(number, held->given);
    };
  // The answer may come before Take returns, on another thread.
  held->ticket = master.Take(std::move(ask), [&call, held, fill = std::move(fill)](Taken taken) {
    for (const ledger::Lease& lease : taken.leases) held->given.push_back(lease.id);
    call.Finish(taken.next == Taken::Next::kCancelled
                    ? grpc::Status(grpc::StatusCode::CANCELLED, "the client is gone")
                    : fill(std::move(taken)));
  });
}

}  // namespace master
