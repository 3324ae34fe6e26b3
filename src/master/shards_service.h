// `trainyard.Shards`: what our own client speaks. proto/shards.proto is its manual.
#pragma once

#include "master/call.h"
#include "master/master.h"
#include "shards.pb.h"

namespace master {

class ShardsService {
 public:
  explicit ShardsService(Master& master) : master_(master) {}

  void Register(Call& call, const trainyard::RegisterRequest& request,
                trainyard::RegisterReply& reply);
  void Take(Call& call, const trainyard::TakeRequest& request, trainyard::TakeReply& reply);
  void Report(Call& call, const trainyard::ReportRequest& request, trainyard::ReportReply& reply);
  void Commit(Call& call, const trainyard::CommitRequest& request, trainyard::CommitReply& reply);
  void Committed(Call& call, const trainyard::CommittedRequest& request,
                 trainyard::CommittedReply& reply);
  void Look(Call& call, const trainyard::LookRequest& request, trainyard::LookReply& reply);
  void Checkpoint(Call& call, const trainyard::CheckpointRequest& request,
                  trainyard::CheckpointReply& reply);
  void Restore(Call& call, const trainyard::RestoreRequest& request,
               trainyard::RestoreReply& reply);
  void Reset(Call& call, const trainyard::ResetRequest& request, trainyard::ResetReply& reply);

 private:
  // Ends the call of a number that is not served.
  bool Refused(Call& call, int32_t number) const;

  Master& master_;
};

}  // namespace master
