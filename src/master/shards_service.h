// `trainyard.Shards`: what our own client speaks. proto/shards.proto is its manual.
#pragma once

#include <grpcpp/grpcpp.h>

#include "master/master.h"
#include "shards.grpc.pb.h"

namespace master {

class ShardsService : public trainyard::Shards::CallbackService {
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

 public:
  explicit ShardsService(Master& master) : master_(master) {}

  Reactor* Register(Context* context, const trainyard::RegisterRequest* request,
                    trainyard::RegisterReply* reply) override;
  Reactor* Take(Context* context, const trainyard::TakeRequest* request,
                trainyard::TakeReply* reply) override;
  Reactor* Report(Context* context, const trainyard::ReportRequest* request,
                  trainyard::ReportReply* reply) override;
  Reactor* Commit(Context* context, const trainyard::CommitRequest* request,
                  trainyard::CommitReply*) override;
  Reactor* Committed(Context* context, const trainyard::CommittedRequest* request,
                     trainyard::CommittedReply* reply) override;
  Reactor* Look(Context* context, const trainyard::LookRequest* request,
                trainyard::LookReply* reply) override;
  Reactor* Checkpoint(Context* context, const trainyard::CheckpointRequest* request,
                      trainyard::CheckpointReply* reply) override;
  Reactor* Restore(Context* context, const trainyard::RestoreRequest* request,
                   trainyard::RestoreReply*) override;
  Reactor* Reset(Context* context, const trainyard::ResetRequest* request,
                 trainyard::ResetReply*) override;

 private:
  // Ends the call of a number that is not served.
  bool Refused(Reactor* reactor, int32_t number) const;

  Master& master_;
};

}  // namespace master
