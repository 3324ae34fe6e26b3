#include "master/elastic_service.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "master/take_call.h"

namespace master {
namespace {

using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;
using google::protobuf::Empty;

// The sets of clients that give them no name.
constexpr std::string_view kTrainingData = "_EDL_DEFAULT_TRAINING_DATA";
constexpr std::string_view kEvaluationData = "_EDL_DEFAULT_EVALUATION_DATA";

std::string SetOf(const std::string& name, proto::TaskType type = proto::TRAINING) {
  if (!name.empty()) return name;
  return std::string(type == proto::EVALUATION ? kEvaluationData : kTrainingData);
}

Reactor* Finished(Context* context, const grpc::Status& status = grpc::Status::OK) {
  Reactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
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

Reactor* ElasticService::Register(Context* context, const Params& params) {
  Reactor* reactor = context->DefaultReactor();
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
  master_.Register(set, [reactor](const base::Result<ledger::SetParams>& registered) {
    reactor->Finish(registered
                        ? grpc::Status::OK
                        : Refusal(grpc::StatusCode::INVALID_ARGUMENT, registered.error().text()));
  });
  return reactor;
}

Reactor* ElasticService::report_training_params(Context* context,
                                                const proto::ReportTrainingParamsRequest* request,
                                                Empty*) {
  return Register(context, {.name = std::string(kTrainingData),
                            .batch = request->batch_size(),
                            .epochs = request->num_epochs(),
                            .size = request->dataset_size(),
                            .minibatches = request->num_minibatches_per_shard(),
                            .shuffle = request->shuffle(),
                            .shuffle_shards = request->shuffle_shards()});
}

Reactor* ElasticService::report_dataset_shard_params(
    Context* context, const proto::ReportDatasetShardParamsRequest* request, Empty*) {
  return Register(context, {.name = SetOf(request->dataset_name(), request->task_type()),
                            .batch = request->batch_size(),
                            .epochs = request->num_epochs(),
                            .size = request->dataset_size(),
                            .minibatches = request->num_minibatches_per_shard(),
                            .shuffle = request->shuffle(),
                            .shuffle_shards = request->shuffle_shards(),
                            .type = request->task_type()});
}

Reactor* ElasticService::Take(int32_t number, std::string set, proto::Task* task) {
  return new TakeCall(master_, {.number = number, .set = std::move(set)},
                      [task](Taken taken) { return FillTask(std::move(taken), task); });
}

Reactor* ElasticService::get_task(Context*, const proto::GetTaskRequest* request,
                                  proto::Task* task) {
  return Take(request->worker_id(), SetOf(request->dataset_name(), request->task_type()), task);
}

Reactor* ElasticService::get_dataset_task(Context*, const proto::GetDatasetTaskRequest* request,
                                          proto::Task* task) {
  return Take(request->worker_id(), SetOf(request->dataset_name()), task);
}

Reactor* ElasticService::Report(Context* context, int32_t lease, const std::string& error) {
  Reactor* reactor = context->DefaultReactor();
  Reports reports;
  if (error.empty())
    reports.done.push_back(lease);
  else
    reports.failed.emplace_back(lease, error);
  master_.Report(std::move(reports),
                 [reactor](const Counts&) { reactor->Finish(grpc::Status::OK); });
  return reactor;
}

Reactor* ElasticService::report_task_result(Context* context,
                                            const proto::ReportTaskResultRequest* request, Empty*) {
  return Report(context, request->task_id(), request->err_message());
}

Reactor* ElasticService::report_dataset_task_result(
    Context* context, const proto::ReportDatasetTaskResultRequest* request, Empty*) {
  return Report(context, request->task_id(), request->err_message());
}

Reactor* ElasticService::reset_dataset(Context* context, const proto::ResetDatasetRequest* request,
                                       Empty*) {
  Reactor* reactor = context->DefaultReactor();
  master_.Reset(SetOf(request->dataset_name()),
                [reactor](bool) { reactor->Finish(grpc::Status::OK); });
  return reactor;
}

Reactor* ElasticService::get_dataset_epoch(Context* context,
                                           const proto::GetDatasetEpochRequest* request,
                                           proto::GetDatasetEpochResponse* response) {
  Reactor* reactor = context->DefaultReactor();
  master_.Look(-1, SetOf(request->dataset_name()),
               [reactor, response](const ledger::Standing& standing) {
                 response->set_epoch(standing.epoch);
                 reactor->Finish(grpc::Status::OK);
               });
  return reactor;
}

Reactor* ElasticService::get_shard_checkpoint(Context* context,
                                              const proto::GetShardCheckpointRequest* request,
                                              proto::ShardCheckpoint* response) {
  Reactor* reactor = context->DefaultReactor();
  master_.Checkpoint(SetOf(request->dataset_name()), [reactor, response](std::string content) {
    response->set_content(std::move(content));
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

Reactor* ElasticService::report_shard_checkpoint(Context* context,
                                                 const proto::ShardCheckpoint* request,
                                                 proto::ReportShardCheckpointResponse* response) {
  Reactor* reactor = context->DefaultReactor();
  master_.Restore("", request->content(), [reactor, response](const base::Result<>& restored) {
    response->set_success(restored.has_value());
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

Reactor* ElasticService::worker_sync(Context* context, const proto::WorkerSyncRequest* request,
                                     proto::WorkerSyncResponse* response) {
  Reactor* reactor = context->DefaultReactor();
  master_.WorkerSync(
      request->sync_name(), request->worker_id(), [reactor, response](std::optional<bool> ready) {
        response->set_ready(ready.value_or(false));
        reactor->Finish(ready ? grpc::Status::OK
                              : Refusal(grpc::StatusCode::PERMISSION_DENIED,
                                        "this number is of no member of this job that runs"));
      });
  return reactor;
}

Reactor* ElasticService::wait_worker_sync(Context* context,
                                          const proto::WaitWorkerSyncRequest* request,
                                          proto::WorkerSyncResponse* response) {
  Reactor* reactor = context->DefaultReactor();
  master_.WaitSync(request->sync_name(), request->notify(), [reactor, response](bool ready) {
    response->set_ready(ready);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

Reactor* ElasticService::delete_worker_sync(Context* context,
                                            const proto::DeleteWorkerSyncRequest* request, Empty*) {
  Reactor* reactor = context->DefaultReactor();
  master_.DeleteSync(request->sync_name(), request->delete_all(),
                     [reactor] { reactor->Finish(grpc::Status::OK); });
  return reactor;
}

// AllReduce.

Reactor* ElasticService::RefuseAllReduce(Context* context) {
  const std::string text =
      "AllReduce (Horovod, DDP) is not offered by this master: use parameter servers, or a job "
      "that "
      "is not elastic";
  master_.Once("allreduce", "AllReduceRefused", text);
  return Finished(context, {grpc::StatusCode::UNIMPLEMENTED, text});
}

Reactor* ElasticService::get_comm_rank(Context* context, const proto::GetCommRankRequest*,
                                       proto::GetCommRankResponse*) {
  return RefuseAllReduce(context);
}
Reactor* ElasticService::report_training_loop_status(Context* context,
                                                     const proto::ReportTrainingLoopStatusRequest*,
                                                     Empty*) {
  return RefuseAllReduce(context);
}
Reactor* ElasticService::reset_sync(Context* context, const proto::DdpResetSyncRequest*,
                                    proto::DdpResetSyncResponse*) {
  return RefuseAllReduce(context);
}
Reactor* ElasticService::barrier_sync(Context* context, const proto::DdpInitSyncRequest*,
                                      proto::DdpInitSyncResponse*) {
  return RefuseAllReduce(context);
}

// Answered OK and empty.

Reactor* ElasticService::report_used_resource(Context* context,
                                              const proto::ReportUsedResourceRequest* request,
                                              Empty*) {
  master_.Heard(request->worker_id());
  return Finished(context);
}

Reactor* ElasticService::acquire_remote_lock(Context* context,
                                             const proto::AcquireRemoteLockRequest* request,
                                             proto::AcquireRemoteLockResponse*) {
  master_.Once("lock " + request->name(), "LockRefused",
               fmt::format("nobody gets the lock '{}': remote locks are not offered by this master",
                           base::OneLine(request->name())));
  return Finished(context);
}

#define ANSWERED_EMPTY(method, Request, Response)                                \
  Reactor* ElasticService::method(Context* context, const Request*, Response*) { \
    return Finished(context);                                                    \
  }
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
