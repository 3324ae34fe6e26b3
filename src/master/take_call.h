// One call for shards, held by the master for as long as it likes. Owns itself until gRPC is done
// with it.
#pragma once

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "master/master.h"

namespace master {

class TakeCall : public grpc::ServerUnaryReactor {
 public:
  // `fill` makes the response of the answer.
  TakeCall(Master& master, Ask ask, std::function<grpc::Status(Taken)> fill)
      : master_(master), number_(ask.number), ours_(ask.ours) {
    // The answer may come before Take returns, on another thread; gRPC says nothing of a cancelled
    // call before this constructor is done.
    ticket_ = master_.Take(std::move(ask), [this, fill = std::move(fill)](Taken taken) {
      for (const ledger::Lease& lease : taken.leases) given_.push_back(lease.id);
      Finish(taken.next == Taken::Next::kCancelled
                 ? grpc::Status(grpc::StatusCode::CANCELLED, "the client is gone")
                 : fill(std::move(taken)));
    });
  }

  void OnCancel() override {
    cancelled_ = true;
    master_.Cancel(ticket_);
  }

  void OnDone() override {
    if (cancelled_ && !ours_) master_.Lost(number_, given_);
    delete this;
  }

 private:
  Master& master_;
  const int32_t number_;
  const bool ours_;
  uint64_t ticket_ = 0;
  std::vector<int32_t> given_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace master
