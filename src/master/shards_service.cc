#include "master/shards_service.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "master/take_call.h"

namespace master {
namespace {

using grpc::StatusCode;

constexpr int32_t kMostLeases = 1024;  // a call

grpc::Status Refusal(StatusCode code, const std::string& text) {
  return {code, base::CleanUtf8(base::OneLine(text, 1000))};
}

grpc::Status NoSet(const std::string& set) {
  return Refusal(StatusCode::NOT_FOUND, fmt::format("no data set '{}'", base::OneLine(set)));
}

ledger::SetParams FromProto(const trainyard::RegisterRequest& request) {
  return {.name = request.set(),
          .size = request.size(),
          .shard_size = request.shard_size(),
          .epochs = request.epochs(),
          .shuffle_shards = request.shuffle_shards(),
          .shuffle_records = request.shuffle_records(),
          .barrier = request.barrier(),
          .seed = request.seed()};
}

void ToProto(const ledger::SetParams& params, trainyard::RegisterRequest* out) {
  out->set_set(params.name);
  out->set_size(params.size);
  out->set_shard_size(params.shard_size);
  out->set_epochs(params.epochs);
  out->set_shuffle_shards(params.shuffle_shards);
  out->set_shuffle_records(params.shuffle_records);
  out->set_barrier(params.barrier);
  out->set_seed(params.seed);
}

grpc::Status FillTake(const Taken& taken, trainyard::TakeReply& reply) {
  using Next = Taken::Next;
  switch (taken.next) {
    case Next::kDenied:
      return Refusal(StatusCode::PERMISSION_DENIED, taken.text);
    case Next::kNoSet:
      return Refusal(StatusCode::NOT_FOUND, taken.text);
    case Next::kTaken:
      reply.set_next(trainyard::TAKEN);
      break;
    case Next::kWait:
      reply.set_next(trainyard::WAIT);
      break;
    case Next::kDrain:
      reply.set_next(trainyard::DRAIN);
      break;
    case Next::kEnd:
    case Next::kCancelled:  // answered by the call itself
      reply.set_next(trainyard::END);
      break;
  }
  reply.set_leaving(taken.leaving);
  for (const ledger::Lease& lease : taken.leases) {
    trainyard::Lease* out = reply.add_leases();
    out->set_id(lease.id);
    out->set_epoch(lease.epoch);
    out->set_start(lease.start);
    out->set_end(lease.end);
    out->mutable_records()->Add(lease.records.begin(), lease.records.end());
  }
  return grpc::Status::OK;
}

}  // namespace

bool ShardsService::Refused(Call& call, int32_t number) const {
  if (master_.Serves(number)) return false;
  call.Finish(Refusal(StatusCode::PERMISSION_DENIED,
                      fmt::format("number {} is of no member of this job that runs", number)));
  return true;
}

void ShardsService::Register(Call& call, const trainyard::RegisterRequest& request,
                             trainyard::RegisterReply& reply) {
  if (Refused(call, request.number())) return;
  const ledger::SetParams params = FromProto(request);
  master_.Register(params, [&call, &reply, params](const base::Result<ledger::SetParams>& is) {
    if (!is) return call.Finish(Refusal(StatusCode::INVALID_ARGUMENT, is.error().text()));
    reply.set_conflict(*is != params);
    ToProto(*is, reply.mutable_in_force());
    call.Finish(grpc::Status::OK);
  });
}

void ShardsService::Take(Call& call, const trainyard::TakeRequest& request,
                         trainyard::TakeReply& reply) {
  if (request.most() < 1) {
    call.Finish(Refusal(StatusCode::INVALID_ARGUMENT, "most must be at least 1"));
    return;
  }
  TakeFor(master_, call,
          {.number = request.number(),
           .set = request.set(),
           .most = static_cast<size_t>(std::min(request.most(), kMostLeases)),
           .ours = true,
           .holding = {request.holding().begin(), request.holding().end()}},
          [&reply](const Taken& taken) { return FillTake(taken, reply); });
}

void ShardsService::Report(Call& call, const trainyard::ReportRequest& request,
                           trainyard::ReportReply& reply) {
  if (Refused(call, request.number())) return;
  Reports reports{.done = {request.done().begin(), request.done().end()},
                  .failed = {},
                  .holding = {request.holding().begin(), request.holding().end()}};
  for (const trainyard::Failure& failure : request.failed()) {
    if (failure.error().empty()) {
      call.Finish(Refusal(StatusCode::INVALID_ARGUMENT, "a failure without an error"));
      return;
    }
    reports.failed.emplace_back(failure.id(), failure.error());
  }
  master_.Heard(request.number());
  master_.Report(std::move(reports), [&call, &reply](const Counts& counts) {
    reply.set_counted(counts.counted);
    reply.set_already(counts.already);
    reply.set_unknown(counts.unknown);
    reply.mutable_over()->Add(counts.over.begin(), counts.over.end());
    call.Finish(grpc::Status::OK);
  });
}

void ShardsService::Commit(Call& call, const trainyard::CommitRequest& request,
                           trainyard::CommitReply&) {
  if (Refused(call, request.number())) return;
  master_.Heard(request.number());
  master_.Keep(request.number(), request.set(), {request.done().begin(), request.done().end()},
               request.key(), request.value(), [&call](const base::Result<bool>& kept) {
                 if (!kept)
                   return call.Finish(Refusal(StatusCode::INVALID_ARGUMENT, kept.error().text()));
                 call.Finish(*kept ? grpc::Status::OK
                                   : Refusal(StatusCode::FAILED_PRECONDITION,
                                             "a shard is not this member's any more"));
               });
}

void ShardsService::Committed(Call& call, const trainyard::CommittedRequest& request,
                              trainyard::CommittedReply& reply) {
  if (Refused(call, request.number())) return;
  master_.Kept(request.set(), request.key(), [&call, &reply](std::optional<std::string> value) {
    reply.set_known(value.has_value());
    if (value) reply.set_value(*std::move(value));
    call.Finish(grpc::Status::OK);
  });
}

void ShardsService::Look(Call& call, const trainyard::LookRequest& request,
                         trainyard::LookReply& reply) {
  if (Refused(call, request.number())) return;
  master_.Look(request.number(), request.set(), [&call, &reply](const ledger::Standing& standing) {
    reply.set_registered(standing.known);
    reply.set_complete(standing.complete);
    reply.set_epoch(standing.epoch);
    reply.set_epochs(standing.epochs);
    reply.set_todo(standing.todo);
    reply.set_doing(standing.doing);
    reply.set_records_left(standing.records_left);
    reply.set_records_total(standing.records_total);
    call.Finish(grpc::Status::OK);
  });
}

void ShardsService::Checkpoint(Call& call, const trainyard::CheckpointRequest& request,
                               trainyard::CheckpointReply& reply) {
  if (Refused(call, request.number())) return;
  master_.Checkpoint(request.set(), [&call, &reply, set = request.set()](std::string content) {
    if (content.empty()) return call.Finish(NoSet(set));
    reply.set_content(std::move(content));
    call.Finish(grpc::Status::OK);
  });
}

void ShardsService::Restore(Call& call, const trainyard::RestoreRequest& request,
                            trainyard::RestoreReply&) {
  if (Refused(call, request.number())) return;
  master_.Restore(request.set(), request.content(), [&call](const base::Result<>& restored) {
    call.Finish(restored ? grpc::Status::OK
                         : Refusal(StatusCode::INVALID_ARGUMENT, restored.error().text()));
  });
}

void ShardsService::Reset(Call& call, const trainyard::ResetRequest& request,
                          trainyard::ResetReply&) {
  if (Refused(call, request.number())) return;
  master_.Reset(request.set(), [&call, set = request.set()](bool known) {
    call.Finish(known ? grpc::Status::OK : NoSet(set));
  });
}

}  // namespace master
