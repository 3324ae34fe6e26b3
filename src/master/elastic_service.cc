#include "master/elastic_service.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "master/take_call.h"

namespace master {
namespace {

using google::protobuf::Empty;

// The sets of clients that give them no name.
constexpr std::string_view kTrainingData = "_EDL_DEFAULT_TRAINING_DATA";
constexpr std::string_view kEvaluationData = "_EDL_DEFAULT_EVALUATION_DATA";

std::string SetOf(const std::string& name, proto::TaskType type = proto::TRAINING) {
  if (!name.empty()) return name;
  return std::string(type == proto::EVALUATION ? kEvaluationData : kTrainingData);
}

grpc::Status Refusal(grpc::StatusCode code, const std::string& text) {
  return {code, base::CleanUtf8(base::OneLine(text, 1000))};
}

grpc::Status FillTask(Taken taken, proto::Task* task) {
  switch (taken.next) {
    case Taken::Next::kDenied:
      return Refusal(grpc::StatusCode::PERMISSION_DENIED, taken.text);
    case Taken::Next::kTaken:
      break;
    default:
      return grpc::Status::OK;  // an empty task is the end of the data
  }
  const ledger::Lease& lease = taken.leases.front();
  task->set_task_id(lease.id);
  task->set_type(static_cast<proto::TaskType>(taken.task_type));
  proto::Shard* shard = task->mutable_shard();
  shard->set_start(lease.start);
  shard->set_end(lease.end);
  shard->mutable_indices()->Add(lease.records.begin(), lease.records.end());
  return grpc::Status::OK;
}

}  // namespace

struct ElasticService::Params {
  std::string name;
  int64_t batch = 0, epochs = 0, size = 0, minibatches = 0;
  bool shuffle = false, shuffle_shards = false;
  proto::TaskType type = proto::NONE;
};

void ElasticService::Register(Call& call, const Params& params) {
  const int64_t minibatches = params.minibatches == 0 ? minibatches_ : params.minibatches;
  const proto::TaskType type = params.type != proto::NONE       ? params.type
                               : params.name == kEvaluationData ? proto::EVALUATION
                                                                : proto::TRAINING;
  // `shuffle` was the order of the shards in 1.0.0 and of the records in its successors, which read
  // `indices`; who wants either is content with both.
  const ledger::SetParams set{
      .name = params.name,
      .size = params.size,
      .shard_size = params.batch > 0 && minibatches > 0 ? params.batch * minibatches : 0,
      .epochs = static_cast<int32_t>(std::max<int64_t>(params.epochs, 0)),
      .shuffle_shards = params.shuffle || params.shuffle_shards,
      .shuffle_records = params.shuffle,
      .seed = seed_,
      .task_type = type};
  master_.Register(set, [&call](const base::Result<ledger::SetParams>& registered) {
    call.Finish(registered
                    ? grpc::Status::OK
                    : Refusal(grpc::StatusCode::INVALID_ARGUMENT, registered.error().text()));
  });
}

void ElasticService::report_training_params(Call& call,
                                            const proto::ReportTrainingParamsRequest& request,
                                            Empty&) {
  Register(call, {.name = std::string(kTrainingData),
                  .batch = request.batch_size(),
                  .epochs = request.num_epochs(),
                  .size = request.dataset_size(),
                  .minibatches = request.num_minibatches_per_shard(),
                  .shuffle = request.shuffle(),
                  .shuffle_shards = request.shuffle_shards()});
}

void ElasticService::report_dataset_shard_params(
    Call& call, const proto::ReportDatasetShardParamsRequest& request, Empty&) {
  Register(call, {.name = SetOf(request.dataset_name(), request.task_type()),
                  .batch = request.batch_size(),
                  .epochs = request.num_epochs(),
                  .size = request.dataset_size(),
                  .minibatches = request.num_minibatches_per_shard(),
                  .shuffle = request.shuffle(),
                  .shuffle_shards = request.shuffle_shards(),
                  .type = request.task_type()});
}

void ElasticService::Take(Call& call, int32_t number, std::string set, proto::Task& task) {
  TakeFor(master_, call, {.number = number, .set = std::move(set)},
          [&task](Taken taken) { return FillTask(std::move(taken), &task); });
}

void ElasticService::get_task(Call& call, const proto::GetTaskRequest& request,
                              proto::Task& reply) {
  Take(call, request.worker_id(), SetOf(request.dataset_name(), request.task_type()), reply);
}

void ElasticService::get_dataset_task(Call& call, const proto::GetDatasetTaskRequest& request,
                                      proto::Task& reply) {
  Take(call, request.worker_id(), SetOf(request.dataset_name()), reply);
}

void ElasticService::Report(Call& call, int32_t lease, const std::string& error) {
  Reports reports;
  if (error.empty())
    reports.done.push_back(lease);
  else
    reports.failed.emplace_back(lease, error);
  master_.Report(std::move(reports), [&call](const Counts&) { call.Finish(); });
}

void ElasticService::report_task_result(Call& call, const proto::ReportTaskResultRequest& request,
                                        Empty&) {
  Report(call, request.task_id(), request.err_message());
}

void ElasticService::report_dataset_task_result(
    Call& call, const proto::ReportDatasetTaskResultRequest& request, Empty&) {
  Report(call, request.task_id(), request.err_message());
}

void ElasticService::reset_dataset(Call& call, const proto::ResetDatasetRequest& request, Empty&) {
  master_.Reset(SetOf(request.dataset_name()), [&call](bool) { call.Finish(); });
}

void ElasticService::get_dataset_epoch(Call& call, const proto::GetDatasetEpochRequest& request,
                                       proto::GetDatasetEpochResponse& reply) {
  master_.Look(-1, SetOf(request.dataset_name()),
               [&call, &reply](const ledger::Standing& standing) {
                 reply.set_epoch(standing.epoch);
                 call.Finish();
               });
}

void ElasticService::get_shard_checkpoint(Call& call,
                                          const proto::GetShardCheckpointRequest& request,
                                          proto::ShardCheckpoint& reply) {
  master_.Checkpoint(SetOf(request.dataset_name()), [&call, &reply](std::string content) {
    reply.set_content(std::move(content));
    call.Finish();
  });
}

void ElasticService::report_shard_checkpoint(Call& call, const proto::ShardCheckpoint& request,
                                             proto::ReportShardCheckpointResponse& reply) {
  master_.Restore("", request.content(), [&call, &reply](const base::Result<>& restored) {
    reply.set_success(restored.has_value());
    call.Finish();
  });
}

void ElasticService::worker_sync(Call& call, const proto::WorkerSyncRequest& request,
                                 proto::WorkerSyncResponse& reply) {
  master_.WorkerSync(
      request.sync_name(), request.worker_id(), [&call, &reply](std::optional<bool> ready) {
        reply.set_ready(ready.value_or(false));
        call.Finish(ready ? grpc::Status::OK
                          : Refusal(grpc::StatusCode::PERMISSION_DENIED,
                                    "this number is of no member of this job that runs"));
      });
}

void ElasticService::wait_worker_sync(Call& call, const proto::WaitWorkerSyncRequest& request,
                                      proto::WorkerSyncResponse& reply) {
  master_.WaitSync(request.sync_name(), request.notify(), [&call, &reply](bool ready) {
    reply.set_ready(ready);
    call.Finish();
  });
}

void ElasticService::delete_worker_sync(Call& call, const proto::DeleteWorkerSyncRequest& request,
                                        Empty&) {
  master_.DeleteSync(request.sync_name(), request.delete_all(), [&call] { call.Finish(); });
}

// AllReduce.

void ElasticService::RefuseAllReduce(Call& call) {
  const std::string text =
      "AllReduce (Horovod, DDP) is not offered by this master: use parameter servers, or a job "
      "that "
      "is not elastic";
  master_.Once("allreduce", "AllReduceRefused", text);
  call.Finish({grpc::StatusCode::UNIMPLEMENTED, text});
}

void ElasticService::get_comm_rank(Call& call, const proto::GetCommRankRequest&,
                                   proto::GetCommRankResponse&) {
  RefuseAllReduce(call);
}
void ElasticService::report_training_loop_status(Call& call,
                                                 const proto::ReportTrainingLoopStatusRequest&,
                                                 Empty&) {
  RefuseAllReduce(call);
}
void ElasticService::reset_sync(Call& call, const proto::DdpResetSyncRequest&,
                                proto::DdpResetSyncResponse&) {
  RefuseAllReduce(call);
}
void ElasticService::barrier_sync(Call& call, const proto::DdpInitSyncRequest&,
                                  proto::DdpInitSyncResponse&) {
  RefuseAllReduce(call);
}

// Answered OK and empty.

void ElasticService::report_used_resource(Call& call,
                                          const proto::ReportUsedResourceRequest& request, Empty&) {
  master_.Heard(request.worker_id());
  call.Finish();
}

void ElasticService::acquire_remote_lock(Call& call, const proto::AcquireRemoteLockRequest& request,
                                         proto::AcquireRemoteLockResponse&) {
  master_.Once("lock " + request.name(), "LockRefused",
               fmt::format("nobody gets the lock '{}': remote locks are not offered by this master",
                           base::OneLine(request.name())));
  call.Finish();
}

#define ANSWERED_EMPTY(method, Request, Response) \
  void ElasticService::method(Call& call, const Request&, Response&) { call.Finish(); }
ANSWERED_EMPTY(report_model_metric, proto::ModelMetric, Empty)
ANSWERED_EMPTY(report_global_step, proto::GlobalStepRecord, Empty)
ANSWERED_EMPTY(query_relaunch_ps_pod, Empty, proto::QueryRelaunchPSPodResponse)
ANSWERED_EMPTY(ready_for_ps_relaunch, Empty, Empty)
ANSWERED_EMPTY(update_critical_worker, proto::UpdateCriticalWorkerRequest, Empty)
ANSWERED_EMPTY(query_running_nodes, Empty, proto::RunningNodes)
ANSWERED_EMPTY(get_cluster_version, proto::GetClusterVersionRequest,
               proto::GetClusterVersionResponse)
ANSWERED_EMPTY(update_cluster_version, proto::UpdateClusterVersionRequest, Empty)
ANSWERED_EMPTY(query_ps_address, Empty, proto::QueryPsAddressResponse)
ANSWERED_EMPTY(query_ps_nodes, Empty, proto::QueryPsNodesResponse)
ANSWERED_EMPTY(query_training_status, Empty, proto::QueryTrainingStatusResponse)
ANSWERED_EMPTY(init_remote_lock, proto::InitRemoteLockRequest, Empty)
ANSWERED_EMPTY(release_remote_lock, proto::ReleaseRemoteLockRequest, Empty)
ANSWERED_EMPTY(report_autotune_status, proto::AutoResourceConfig, Empty)
ANSWERED_EMPTY(report_prestop, proto::ReportPreStopRequest, Empty)
#undef ANSWERED_EMPTY

}  // namespace master
