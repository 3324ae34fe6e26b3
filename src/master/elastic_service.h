// `proto.Master`: what the unmodified clients elasticdl_api 1.0.0 and elasticai_api 1.4.1 and 1.4.2
// speak.
//
// To them an error of a call for a shard, and "wait", are the end of the data. So such a call is
// answered with a shard, with the end, or held; an error is for those who are not of this job.
#pragma once

#include <cstdint>

#include <grpcpp/grpcpp.h>

#include "elastic.grpc.pb.h"
#include "master/master.h"

namespace master {

class ElasticService : public proto::Master::CallbackService {
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  using Empty = google::protobuf::Empty;

 public:
  ElasticService(Master& master, int32_t minibatches, uint64_t seed)
      : master_(master), minibatches_(minibatches), seed_(seed) {}

  // Data sets without a name.
  Reactor* report_training_params(Context* context,
                                  const proto::ReportTrainingParamsRequest* request,
                                  Empty*) override;
  Reactor* get_task(Context*, const proto::GetTaskRequest* request, proto::Task* task) override;
  Reactor* report_task_result(Context* context, const proto::ReportTaskResultRequest* request,
                              Empty*) override;

  // Data sets with one.
  Reactor* report_dataset_shard_params(Context* context,
                                       const proto::ReportDatasetShardParamsRequest* request,
                                       Empty*) override;
  Reactor* get_dataset_task(Context*, const proto::GetDatasetTaskRequest* request,
                            proto::Task* task) override;
  Reactor* report_dataset_task_result(Context* context,
                                      const proto::ReportDatasetTaskResultRequest* request,
                                      Empty*) override;
  Reactor* reset_dataset(Context* context, const proto::ResetDatasetRequest* request,
                         Empty*) override;
  Reactor* get_dataset_epoch(Context* context, const proto::GetDatasetEpochRequest* request,
                             proto::GetDatasetEpochResponse* response) override;
  Reactor* get_shard_checkpoint(Context* context, const proto::GetShardCheckpointRequest* request,
                                proto::ShardCheckpoint* response) override;
  Reactor* report_shard_checkpoint(Context* context, const proto::ShardCheckpoint* request,
                                   proto::ReportShardCheckpointResponse* response) override;

  // Workers that wait for each other.
  Reactor* worker_sync(Context* context, const proto::WorkerSyncRequest* request,
                       proto::WorkerSyncResponse* response) override;
  Reactor* wait_worker_sync(Context* context, const proto::WaitWorkerSyncRequest* request,
                            proto::WorkerSyncResponse* response) override;
  Reactor* delete_worker_sync(Context* context, const proto::DeleteWorkerSyncRequest* request,
                              Empty*) override;

  // AllReduce: refused.
  Reactor* get_comm_rank(Context*, const proto::GetCommRankRequest*,
                         proto::GetCommRankResponse*) override;
  Reactor* report_training_loop_status(Context*, const proto::ReportTrainingLoopStatusRequest*,
                                       Empty*) override;
  Reactor* reset_sync(Context*, const proto::DdpResetSyncRequest*,
                      proto::DdpResetSyncResponse*) override;
  Reactor* barrier_sync(Context*, const proto::DdpInitSyncRequest*,
                        proto::DdpInitSyncResponse*) override;

  // Answered OK and empty (docs/differences.md says what that means to who asks).
  Reactor* report_used_resource(Context*, const proto::ReportUsedResourceRequest*, Empty*) override;
  Reactor* report_model_metric(Context*, const proto::ModelMetric*, Empty*) override;
  Reactor* report_global_step(Context*, const proto::GlobalStepRecord*, Empty*) override;
  Reactor* query_relaunch_ps_pod(Context*, const Empty*,
                                 proto::QueryRelaunchPSPodResponse*) override;
  Reactor* ready_for_ps_relaunch(Context*, const Empty*, Empty*) override;
  Reactor* update_critical_worker(Context*, const proto::UpdateCriticalWorkerRequest*,
                                  Empty*) override;
  Reactor* query_running_nodes(Context*, const Empty*, proto::RunningNodes*) override;
  Reactor* get_cluster_version(Context*, const proto::GetClusterVersionRequest*,
                               proto::GetClusterVersionResponse*) override;
  Reactor* update_cluster_version(Context*, const proto::UpdateClusterVersionRequest*,
                                  Empty*) override;
  Reactor* query_ps_address(Context*, const Empty*, proto::QueryPsAddressResponse*) override;
  Reactor* query_ps_nodes(Context*, const Empty*, proto::QueryPsNodesResponse*) override;
  Reactor* query_training_status(Context*, const Empty*,
                                 proto::QueryTrainingStatusResponse*) override;
  Reactor* init_remote_lock(Context*, const proto::InitRemoteLockRequest*, Empty*) override;
  Reactor* acquire_remote_lock(Context*, const proto::AcquireRemoteLockRequest*,
                               proto::AcquireRemoteLockResponse*) override;
  Reactor* release_remote_lock(Context*, const proto::ReleaseRemoteLockRequest*, Empty*) override;
  Reactor* report_autotune_status(Context*, const proto::AutoResourceConfig*, Empty*) override;
  Reactor* report_prestop(Context*, const proto::ReportPreStopRequest*, Empty*) override;

 private:
  struct Params;

  Reactor* Take(int32_t number, std::string set, proto::Task* task);
  Reactor* Report(Context* context, int32_t lease, const std::string& error);
  Reactor* Register(Context* context, const Params& params);
  Reactor* RefuseAllReduce(Context* context);

  Master& master_;
  const int32_t minibatches_;
  const uint64_t seed_;
};

}  // namespace master
