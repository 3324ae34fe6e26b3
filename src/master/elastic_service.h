// `proto.Master`: what the unmodified clients elasticdl_api 1.0.0 and elasticai_api 1.4.1 and 1.4.2
// speak.
//
// To them an error of a call for a shard, and "wait", are the end of the data. So such a call is
// answered with a shard, with the end, or held; an error is for those who are not of this job.
#pragma once

#include <cstdint>

#include "elastic.pb.h"
#include "master/call.h"
#include "master/master.h"

namespace master {

class ElasticService {
  using Empty = google::protobuf::Empty;

 public:
  ElasticService(Master& master, int32_t minibatches, uint64_t seed)
      : master_(master), minibatches_(minibatches), seed_(seed) {}

  // Data sets without a name.
  void report_training_params(Call& call, const proto::ReportTrainingParamsRequest&, Empty&);
  void get_task(Call& call, const proto::GetTaskRequest&, proto::Task&);
  void report_task_result(Call& call, const proto::ReportTaskResultRequest&, Empty&);

  // Data sets with one.
  void report_dataset_shard_params(Call& call, const proto::ReportDatasetShardParamsRequest&,
                                   Empty&);
  void get_dataset_task(Call& call, const proto::GetDatasetTaskRequest&, proto::Task&);
  void report_dataset_task_result(Call& call, const proto::ReportDatasetTaskResultRequest&, Empty&);
  void reset_dataset(Call& call, const proto::ResetDatasetRequest&, Empty&);
  void get_dataset_epoch(Call& call, const proto::GetDatasetEpochRequest&,
                         proto::GetDatasetEpochResponse&);
  void get_shard_checkpoint(Call& call, const proto::GetShardCheckpointRequest&,
                            proto::ShardCheckpoint&);
  void report_shard_checkpoint(Call& call, const proto::ShardCheckpoint&,
                               proto::ReportShardCheckpointResponse&);

  // Workers that wait for each other.
  void worker_sync(Call& call, const proto::WorkerSyncRequest&, proto::WorkerSyncResponse&);
  void wait_worker_sync(Call& call, const proto::WaitWorkerSyncRequest&,
                        proto::WorkerSyncResponse&);
  void delete_worker_sync(Call& call, const proto::DeleteWorkerSyncRequest&, Empty&);

  // AllReduce: refused.
  void get_comm_rank(Call& call, const proto::GetCommRankRequest&, proto::GetCommRankResponse&);
  void report_training_loop_status(Call& call, const proto::ReportTrainingLoopStatusRequest&,
                                   Empty&);
  void reset_sync(Call& call, const proto::DdpResetSyncRequest&, proto::DdpResetSyncResponse&);
  void barrier_sync(Call& call, const proto::DdpInitSyncRequest&, proto::DdpInitSyncResponse&);

  // Answered OK and empty (docs/differences.md says what that means to who asks).
  void report_used_resource(Call& call, const proto::ReportUsedResourceRequest&, Empty&);
  void report_model_metric(Call& call, const proto::ModelMetric&, Empty&);
  void report_global_step(Call& call, const proto::GlobalStepRecord&, Empty&);
  void query_relaunch_ps_pod(Call& call, const Empty&, proto::QueryRelaunchPSPodResponse&);
  void ready_for_ps_relaunch(Call& call, const Empty&, Empty&);
  void update_critical_worker(Call& call, const proto::UpdateCriticalWorkerRequest&, Empty&);
  void query_running_nodes(Call& call, const Empty&, proto::RunningNodes&);
  void get_cluster_version(Call& call, const proto::GetClusterVersionRequest&,
                           proto::GetClusterVersionResponse&);
  void update_cluster_version(Call& call, const proto::UpdateClusterVersionRequest&, Empty&);
  void query_ps_address(Call& call, const Empty&, proto::QueryPsAddressResponse&);
  void query_ps_nodes(Call& call, const Empty&, proto::QueryPsNodesResponse&);
  void query_training_status(Call& call, const Empty&, proto::QueryTrainingStatusResponse&);
  void init_remote_lock(Call& call, const proto::InitRemoteLockRequest&, Empty&);
  void acquire_remote_lock(Call& call, const proto::AcquireRemoteLockRequest&,
                           proto::AcquireRemoteLockResponse&);
  void release_remote_lock(Call& call, const proto::ReleaseRemoteLockRequest&, Empty&);
  void report_autotune_status(Call& call, const proto::AutoResourceConfig&, Empty&);
  void report_prestop(Call& call, const proto::ReportPreStopRequest&, Empty&);

 private:
  struct Params;

  void Take(Call& call, int32_t number, std::string set, proto::Task& task);
  void Report(Call& call, int32_t lease, const std::string& error);
  void Register(Call& call, const Params& params);
  void RefuseAllReduce(Call& call);

  Master& master_;
  const int32_t minibatches_;
  const uint64_t seed_;
};

}  // namespace master
