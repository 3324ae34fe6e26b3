#include <gtest/gtest.h>

#include "io/clock.h"
#include "io/testing/clock_step.h"
#include "master/testing.h"

namespace master {
namespace {

class ShardsServiceTest : public MasterTest {
 protected:
  trainyard::ReportReply Report(int32_t number, const std::vector<int32_t>& done,
                                const std::vector<int32_t>& holding = {}) {
    trainyard::ReportRequest request;
    request.set_number(number);
    request.set_set("iris");
    request.mutable_done()->Add(done.begin(), done.end());
    request.mutable_holding()->Add(holding.begin(), holding.end());
    grpc::ClientContext context;
    trainyard::ReportReply reply;
    status_ = shards_->Report(&context, request, &reply);
    return reply;
  }

  trainyard::RegisterReply Register(int64_t size, int64_t shard_size, int32_t number = 0) {
    trainyard::RegisterRequest request;
    request.set_number(number);
    request.set_set("iris");
    request.set_size(size);
    request.set_shard_size(shard_size);
    request.set_epochs(1);
    grpc::ClientContext context;
    trainyard::RegisterReply reply;
    status_ = shards_->Register(&context, request, &reply);
    return reply;
  }
};

TEST_F(ShardsServiceTest, SeveralShardsACallUntilAllAreReported) {
  EXPECT_FALSE(Register(100, 10).conflict());
  const auto first = Take(0, 6);
  EXPECT_EQ(first.next(), trainyard::TAKEN);
  EXPECT_EQ(Ids(first), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Report(0, Ids(first)).counted(), 6);
  EXPECT_EQ(Report(0, Ids(first)).already(), 6);  // repeated, because its answer got lost
  const auto rest = Take(0, 6);
  EXPECT_EQ(rest.leases_size(), 4);
  EXPECT_EQ(Take(0, 6, Ids(rest)).next(), trainyard::DRAIN);
  EXPECT_EQ(Report(0, Ids(rest)).counted(), 4);
  EXPECT_EQ(Take(0, 6).next(), trainyard::END);
  EXPECT_TRUE(Data().complete);
}

TEST_F(ShardsServiceTest, WhatTheClientDoesNotHoldIsGivenAgain) {
  Register(40, 10);
  const auto first = Take(0, 2);
  const auto lost = Take(0, 2, Ids(first));
  const auto again = Take(0, 2, Ids(first));
  EXPECT_EQ(again.SerializeAsString(), lost.SerializeAsString());
  Restart({Live(0), Live(1)});
  EXPECT_EQ(Take(0, 2, Ids(first)).SerializeAsString(), lost.SerializeAsString());
}

TEST_F(ShardsServiceTest, AConflictingRegistrationIsToldWhatIsInForce) {
  Register(100, 10);
  const auto other = Register(50, 10, 1);
  EXPECT_TRUE(other.conflict());
  EXPECT_EQ(other.in_force().size(), 100);
}

TEST_F(ShardsServiceTest, WhoWaitsTooLongIsToldToAskAgain) {
  longest_hold_ = std::chrono::milliseconds(20);
  Restart({Live(0), Live(1)});
  Register(10, 10);
  ASSERT_EQ(Take(0, 1).leases_size(), 1);
  auto held = std::async(std::launch::async, [&] { return Take(1, 1); });
  while (held.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
    if (io::Now() >= master_->NextTick()) master_->Tick();
  EXPECT_EQ(held.get().next(), trainyard::WAIT);
}

TEST_F(ShardsServiceTest, ACallThatOurClientGivesUpMisleadsNobody) {
  Register(10, 10);
  ASSERT_EQ(Take(0, 1).leases_size(), 1);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  trainyard::TakeRequest request;
  request.set_number(1);
  request.set_set("iris");
  request.set_most(1);
  trainyard::TakeReply reply;
  EXPECT_EQ(shards_->Take(&context, request, &reply).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  while (master_->Held() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(Data().misled.empty());
}

TEST_F(ShardsServiceTest, WhoIsToLeaveGivesBackWhatItDoesNotHold) {
  Register(20, 10);
  const auto held = Take(0, 1);
  Take(0, 1, Ids(held));  // its answer gets lost
  Members({In(ledger::MemberState::kLeaving, 0), Live(1)});
  const auto end = Take(0, 1, Ids(held));
  EXPECT_EQ(end.next(), trainyard::END);
  EXPECT_TRUE(end.leaving());
  EXPECT_EQ(Data().todo, 1);
  EXPECT_EQ(Report(0, Ids(held)).counted(), 1);
}

TEST_F(ShardsServiceTest, StrangersAndNonsenseAreRefused) {
  Register(10, 10);
  EXPECT_EQ(Report(77, {1}).counted(), 0);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  Take(0, 0);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  Register(0, 10);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ShardsServiceTest, AModelIsCommittedWithItsShardsOrNotAtAll) {
  Register(40, 10);
  const auto commit = [&](int32_t number, const std::vector<int32_t>& done, std::string value) {
    trainyard::CommitRequest request;
    request.set_number(number);
    request.set_set("iris");
    request.set_key("worker-0");
    request.set_value(std::move(value));
    request.mutable_done()->Add(done.begin(), done.end());
    grpc::ClientContext context;
    trainyard::CommitReply reply;
    return shards_->Commit(&context, request, &reply).error_code();
  };
  const auto committed = [&] {
    trainyard::CommittedRequest request;
    request.set_set("iris");
    request.set_key("worker-0");
    grpc::ClientContext context;
    trainyard::CommittedReply reply;
    EXPECT_TRUE(shards_->Committed(&context, request, &reply).ok());
    return reply.known() ? reply.value() : "(none)";
  };
  EXPECT_EQ(committed(), "(none)");
  const std::vector<int32_t> first = Ids(Take(0, 2));
  EXPECT_EQ(commit(1, first, "model-x"), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(commit(77, first, "model-x"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(commit(0, first, "model\n"), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(committed(), "(none)");
  EXPECT_EQ(commit(0, first, "model-1"), grpc::StatusCode::OK);
  Restart({Live(0), Live(1)});
  EXPECT_EQ(committed(), "model-1");
  EXPECT_EQ(commit(0, first, "model-1"), grpc::StatusCode::OK);  // its answer got lost
  EXPECT_EQ(Data().records_left, 20);

  const std::vector<int32_t> second = Ids(Take(0, 2));
  Members({Live(1)});
  Members({Live(0), Live(1)});
  EXPECT_EQ(commit(0, second, "model-2"), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(committed(), "model-1");
  EXPECT_EQ(Data().todo, 2);
}

TEST_F(ShardsServiceTest, WhoReportsIsToldWhatElseOfItsShardsIsOver) {
  Register(40, 10);
  const auto leases = Ids(Take(0, 3));
  trainyard::ResetRequest reset;
  reset.set_set("iris");
  grpc::ClientContext context;
  trainyard::ResetReply done;
  ASSERT_TRUE(shards_->Reset(&context, reset, &done).ok());
  const auto fresh = Ids(Take(0, 1));
  const auto reply = Report(0, {leases[0]}, {leases[1], leases[2], fresh[0]});
  EXPECT_EQ(reply.already(), 1);
  EXPECT_EQ(std::vector<int32_t>(reply.over().begin(), reply.over().end()),
            (std::vector<int32_t>{leases[1], leases[2]}));
}

TEST_F(ShardsServiceTest, ACheckpointIsRestored) {
  Register(20, 10);
  Report(0, Ids(Take(0, 1)));
  grpc::ClientContext context, context2, context3;
  trainyard::CheckpointRequest request;
  request.set_set("iris");
  trainyard::CheckpointReply checkpoint;
  ASSERT_TRUE(shards_->Checkpoint(&context, request, &checkpoint).ok());
  const auto lease = Take(0, 1);
  trainyard::RestoreRequest restore;
  restore.set_set("iris");
  restore.set_content(checkpoint.content());
  trainyard::RestoreReply reply;
  ASSERT_TRUE(shards_->Restore(&context2, restore, &reply).ok());
  Report(0, Ids(lease));  // of a lease that is void
  EXPECT_EQ(Data().records_left, 10);
  trainyard::LookRequest look;
  look.set_set("iris");
  grpc::ClientContext context4;
  trainyard::LookReply standing;
  ASSERT_TRUE(shards_->Look(&context4, look, &standing).ok());
  EXPECT_EQ(standing.ShortDebugString(),
            "registered: true epoch: 1 epochs: 1 todo: 1 records_left: 10 records_total: 20");
  restore.set_content("nonsense");
  EXPECT_EQ(shards_->Restore(&context3, restore, &reply).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ShardsServiceTest, AStepOfTheWallClockMakesNobodySilent) {
  Register(1000, 10);
  for (const base::Duration step : io::testing::kClockSteps) {
    const auto first = Take(0, 1);
    EXPECT_EQ(Report(0, Ids(first)).counted(), 1);  // from here on there is a measure of silence
    const auto second = Take(0, 1);
    {
      const io::testing::ClockStep stepped(step);
      master_->Tick();
      EXPECT_EQ(Events("MemberSilent"), 0) << step.count();
      EXPECT_LE(master_->NextTick(), io::Now() + ledger::Ledger::kLeastSilence) << step.count();
    }
    EXPECT_EQ(Report(0, Ids(second)).counted(), 1) << step.count();
  }
}

TEST_F(ShardsServiceTest, AStepOfTheWallClockChangesNoTimeOfAHeldCall) {
  longest_hold_ = std::chrono::minutes(1);
  Restart({Live(0), Live(1)});
  Register(10, 10);
  const auto all = Take(0, 1);
  auto held = std::async(std::launch::async, [&] { return Take(1, 1); });
  while (master_->Held() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const base::Duration step : io::testing::kClockSteps) {
    const io::testing::ClockStep stepped(step);
    master_->Tick();
    EXPECT_EQ(master_->Held(), 1u) << step.count();
    EXPECT_LE(master_->NextTick(), io::Now() + longest_hold_) << step.count();
  }
  EXPECT_EQ(Report(0, Ids(all)).counted(), 1);
  EXPECT_EQ(held.get().next(), trainyard::END);
}

}  // namespace
}  // namespace master
