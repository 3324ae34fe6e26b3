// The traps of the published protocol, each as the clients run into it.
#include <algorithm>

#include <grpcpp/impl/codegen/client_unary_call.h>
#include <gtest/gtest.h>

#include "io/clock.h"
#include "master/testing.h"

namespace master {
namespace {

using ledger::MemberState;

class ElasticServiceTest : public MasterTest {
 protected:
  // Any method with any bytes.
  template <typename Request>
  grpc::Status Call(const std::string& method, const Request& request) {
    grpc::ClientContext context;
    google::protobuf::Empty empty;
    return grpc::internal::BlockingUnaryCall(
        channel_.get(),
        grpc::internal::RpcMethod(method.c_str(), grpc::internal::RpcMethod::NORMAL_RPC), &context,
        request, &empty);
  }
};

// The one wire-level test that ElasticDL has.
TEST_F(ElasticServiceTest, EightShardsOfTwoEpochsAndThenTheEndThoughNoneWasReported) {
  ASSERT_TRUE(Register("iris", 100, 16, 2, 2).ok());
  std::vector<std::pair<int64_t, int64_t>> shards;
  for (int i = 0; i < 8; ++i) {
    const auto task = Get(0);
    ASSERT_TRUE(task.has_value());
    EXPECT_EQ(task->task_id(), i + 1);
    EXPECT_EQ(task->shard().name(), "");
    shards.emplace_back(task->shard().start(), task->shard().end());
  }
  EXPECT_EQ(shards,
            (std::vector<std::pair<int64_t, int64_t>>{
                {0, 32}, {32, 64}, {64, 96}, {96, 100}, {0, 32}, {32, 64}, {64, 96}, {96, 100}}));
  EXPECT_FALSE(Get(0).has_value());
  EXPECT_TRUE(status_.ok());
}

TEST_F(ElasticServiceTest, CallsWithoutANameMeanTheDefaultTrainingData) {
  grpc::ClientContext context, context2, context3;
  proto::ReportTrainingParamsRequest params;
  params.set_batch_size(5);
  params.set_dataset_size(10);
  params.set_num_epochs(1);
  google::protobuf::Empty empty;
  ASSERT_TRUE(stub_->report_training_params(&context, params, &empty).ok());
  proto::GetTaskRequest get;
  proto::Task task;
  ASSERT_TRUE(stub_->get_task(&context2, get, &task).ok());
  EXPECT_EQ(task.shard().end(), 10);  // 8 batches a shard where the client leaves it open
  proto::ReportTaskResultRequest report;
  report.set_task_id(task.task_id());
  ASSERT_TRUE(stub_->report_task_result(&context3, report, &empty).ok());
  const auto data = Data();
  EXPECT_TRUE(data.complete);
  ASSERT_EQ(data.sets.size(), 1u);
  EXPECT_EQ(data.sets[0].name, "_EDL_DEFAULT_TRAINING_DATA");
}

TEST_F(ElasticServiceTest, WhoHoldsNothingIsHeldUntilAShardOfTheDeadComesBack) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  const auto first = Get(0);
  auto held = HeldGet(1);
  Members({In(MemberState::kFailed, 0), Live(1)});
  const auto again = held.get();
  ASSERT_TRUE(again.has_value());
  EXPECT_NE(again->task_id(), first->task_id());
  EXPECT_EQ(again->shard().end(), 10);
  EXPECT_EQ(Events("ShardsReturned"), 1);
}

TEST_F(ElasticServiceTest, WhoHoldsNothingIsHeldUntilAllIsDone) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  const auto first = Get(0);
  auto held = HeldGet(1);
  ASSERT_TRUE(Report(first->task_id()).ok());
  EXPECT_FALSE(held.get().has_value());
  EXPECT_TRUE(Data().complete);
  EXPECT_TRUE(Data().misled.empty());
}

TEST_F(ElasticServiceTest, WhoHoldsShardsIsToldTheEndAtOnceAndIsMisledUntilAllIsDone) {
  ASSERT_TRUE(Register("iris", 20, 10, 1).ok());
  const auto first = Get(0);
  const auto second = Get(1);
  EXPECT_FALSE(Get(0).has_value());
  EXPECT_EQ(Data().misled, (std::vector<std::string>{"worker-0@0"}));
  ASSERT_TRUE(Report(first->task_id()).ok());
  ASSERT_TRUE(Report(second->task_id()).ok());
  EXPECT_TRUE(Data().misled.empty());
}

TEST_F(ElasticServiceTest, WhoSucceedsAfterTheEndIsTakenToHaveTrainedWhatItHeld) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  ASSERT_TRUE(Get(0).has_value());
  EXPECT_FALSE(Get(0).has_value());
  Members({In(MemberState::kSucceeded, 0), Live(1)});
  EXPECT_TRUE(Data().complete);
  EXPECT_EQ(Events("ShardsAssumed"), 1);
}

TEST_F(ElasticServiceTest, WhoIsToLeaveGetsNoShardButCanReport) {
  ASSERT_TRUE(Register("iris", 20, 10, 1).ok());
  const auto first = Get(0);
  Members({In(MemberState::kLeaving, 0), Live(1)});
  EXPECT_FALSE(Get(0).has_value());
  EXPECT_TRUE(status_.ok());
  EXPECT_TRUE(Report(first->task_id()).ok());
  EXPECT_EQ(Data().records_left, 10);
}

TEST_F(ElasticServiceTest, ANumberIsServedOnceTheHostNamesIt) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  auto held = HeldGet(65536);
  Members({Live(0), {.name = "worker-0@1", .number = 65536}});
  EXPECT_TRUE(held.get().has_value());
}

class ImpatientMasterTest : public ElasticServiceTest {
 protected:
  ImpatientMasterTest() {
    introduction_ = longest_hold_ = std::chrono::milliseconds(20);
    Restart({Live(0), Live(1)});
  }
  void TickUntil(const std::function<bool()>& done) {
    while (!done()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (io::Now() >= master_->NextTick()) master_->Tick();
    }
  }
};

TEST_F(ImpatientMasterTest, ANumberThatNobodyNamesIsDeniedAndSaidOnce) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  for (int i = 0; i < 2; ++i) {
    auto held = HeldGet(7);
    TickUntil([&] { return master_->Held() == 0; });
    EXPECT_FALSE(held.get().has_value());
  }
  EXPECT_EQ(Events("MemberUnknown"), 1);
  EXPECT_EQ(Data().doing, 0);
}

TEST_F(ImpatientMasterTest, ASetThatNobodyRegistersEndsWithAnEvent) {
  auto held = HeldGet(0, "nothing");
  TickUntil([&] { return master_->Held() == 0; });
  EXPECT_FALSE(held.get().has_value());
  EXPECT_EQ(Events("DatasetUnknown"), 1);
}

TEST_F(ElasticServiceTest, WhoHasEndedIsDenied) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  Members({In(MemberState::kFailed, 0), Live(1)});
  EXPECT_FALSE(Get(0).has_value());
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(ElasticServiceTest, ACutCallMisleadsItsMember) {
  ASSERT_TRUE(Register("iris", 20, 10, 1).ok());
  ASSERT_TRUE(Get(0).has_value());
  ASSERT_TRUE(Get(0).has_value());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  EXPECT_FALSE(Get(context, 1, "iris").has_value());
  while (Data().misled != std::vector<std::string>{"worker-1@0"})
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(master_->Held(), 0u);
}

TEST_F(ElasticServiceTest, ALeaseWhoseAnswerGotLostGoesBack) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  const auto lost = Get(0);
  master_->Lost(0, {lost->task_id()});
  EXPECT_EQ(Data().misled, (std::vector<std::string>{"worker-0@0"}));
  EXPECT_TRUE(Get(1).has_value());
}

TEST_F(ElasticServiceTest, AMethodThatIsNotThereIsNamedOnceWithItsCaller) {
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(Call("/proto.Master/optimize", google::protobuf::Empty()).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Events("MethodUnknown"), 1);
  EXPECT_NE(events_.back().message.find("/proto.Master/optimize; ipv4:127.0.0.1:"),
            std::string::npos)
      << events_.back().message;
}

TEST_F(ElasticServiceTest, AllReduceIsRefusedByName) {
  EXPECT_EQ(Call("/proto.Master/get_comm_rank", google::protobuf::Empty()).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(
      Call("/proto.Master/report_training_loop_status", google::protobuf::Empty()).error_code(),
      grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Events("AllReduceRefused"), 1);
}

TEST_F(ElasticServiceTest, BothMeaningsOfAModelMetricAreRead) {
  proto::QueryPsAddressResponse of_141;  // a repeated message in field 1 of 1.4.1
  of_141.add_addrs("\x0a\x01w");
  EXPECT_TRUE(Call("/proto.Master/report_model_metric", of_141).ok());
  proto::GlobalStepRecord other;  // and numbers where 1.4.2 has messages
  other.set_timestamp(3);
  other.set_global_step(4);
  EXPECT_TRUE(Call("/proto.Master/report_model_metric", other).ok());
}

TEST_F(ElasticServiceTest, ADataSetOfNoRecordsOrBatchesOfNoneIsRefused) {
  EXPECT_EQ(Register("iris", 0, 10, 1).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Register("iris", 10, 0, 1).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Register("iris", 10, -1, 1).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Events("DatasetRefused"), 1);
  EXPECT_FALSE(Data().registered);
}

TEST_F(ElasticServiceTest, TheFirstRegistrationStaysAndAConflictIsSaid) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  EXPECT_EQ(Events("DatasetConflict"), 0);
  EXPECT_TRUE(Register("iris", 1000, 10, 1).ok());
  EXPECT_EQ(Events("DatasetConflict"), 1);
  EXPECT_EQ(Data().records_total, 10);
}

TEST_F(ElasticServiceTest, AReportOfAnUnknownShardIsHarmlessAndSaidOnce) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  EXPECT_TRUE(Report(99).ok());
  EXPECT_TRUE(Report(-1).ok());
  EXPECT_EQ(Events("ShardUnknown"), 1);
}

TEST_F(ElasticServiceTest, AShardThatFailsThreeTimesIsSetAsideAndNamed) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Report(Get(0)->task_id(), "cannot parse record 3").ok());
  const auto data = Data();
  ASSERT_EQ(data.quarantined.size(), 1u);
  EXPECT_EQ(data.quarantined[0].error, "cannot parse record 3");
  EXPECT_TRUE(data.complete);
  EXPECT_EQ(Events("ShardQuarantined"), 1);
}

TEST_F(ElasticServiceTest, ACheckpointPutsTheDataBackAndAnotherVersionIsRefused) {
  ASSERT_TRUE(Register("iris", 20, 10, 1).ok());
  ASSERT_TRUE(Report(Get(0)->task_id()).ok());
  grpc::ClientContext context, context2, context3;
  proto::GetShardCheckpointRequest get;
  get.set_dataset_name("iris");
  proto::ShardCheckpoint checkpoint;
  ASSERT_TRUE(stub_->get_shard_checkpoint(&context, get, &checkpoint).ok());
  ASSERT_TRUE(Report(Get(0)->task_id()).ok());
  ASSERT_TRUE(Data().complete);
  proto::ReportShardCheckpointResponse response;
  ASSERT_TRUE(stub_->report_shard_checkpoint(&context2, checkpoint, &response).ok());
  EXPECT_TRUE(response.success());
  EXPECT_EQ(Data().records_left, 10);
  checkpoint.set_content("{\"version\":\"v9\"}");
  ASSERT_TRUE(stub_->report_shard_checkpoint(&context3, checkpoint, &response).ok());
  EXPECT_FALSE(response.success());
  EXPECT_EQ(Events("CheckpointRefused"), 1);
}

TEST_F(ElasticServiceTest, WorkersWaitForEachOtherAlsoOverARestart) {
  const auto arrive = [&](int32_t number) {
    grpc::ClientContext context;
    proto::WorkerSyncRequest request;
    request.set_sync_name("start");
    request.set_worker_id(number);
    proto::WorkerSyncResponse response;
    EXPECT_TRUE(stub_->worker_sync(&context, request, &response).ok());
    return response.ready();
  };
  Members({Live(0), Live(1), Live(2)});
  EXPECT_FALSE(arrive(0));
  Restart({Live(0), Live(1), Live(2)});
  EXPECT_FALSE(arrive(1));
  Members({Live(0), Live(1), In(MemberState::kFailed, 2)});
  EXPECT_TRUE(arrive(1));
}

TEST_F(ElasticServiceTest, WhoLivedWhileTheMasterWasAwayIsMisled) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  Members({In(MemberState::kSucceeded, 0), Live(1)});
  Restart({In(MemberState::kSucceeded, 0), Live(1)});
  EXPECT_EQ(Data().misled, (std::vector<std::string>{"worker-1@0"}));
}

// Its answer may have got lost with the master, and the client that asks again has no word for
// that.
TEST_F(ElasticServiceTest, AShardThatIsPassedOverAfterARestartGoesBack) {
  ASSERT_TRUE(Register("iris", 30, 10, 1).ok());
  const auto first = Get(0);
  const auto lost = Get(0);
  Restart({Live(0), Live(1)});
  const auto third = Get(0);
  Restart({Live(0), Live(1)});  // a second time, before anything could tell
  ASSERT_TRUE(third.has_value());
  ASSERT_TRUE(Report(first->task_id()).ok());
  EXPECT_EQ(Data().todo, 0);
  ASSERT_TRUE(Report(third->task_id()).ok());
  EXPECT_EQ(Data().todo, 1);
  const auto again = Get(1);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->shard().start(), lost->shard().start());
}

TEST_F(ElasticServiceTest, AShardThatMayNotHaveArrivedIsNotTakenAsTrained) {
  ASSERT_TRUE(Register("iris", 10, 10, 1).ok());
  ASSERT_TRUE(Get(0).has_value());
  Restart({Live(0), Live(1)});
  EXPECT_FALSE(Get(0).has_value());  // told the end
  Members({In(MemberState::kSucceeded, 0), Live(1)});
  const auto data = Data();
  EXPECT_FALSE(data.complete);
  EXPECT_EQ(data.todo, 1);
  EXPECT_EQ(data.misled, (std::vector<std::string>{"worker-0@0", "worker-1@0"}));
}

}  // namespace
}  // namespace master
