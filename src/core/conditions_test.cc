#include "core/conditions.h"

#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

TEST(Conditions, AreListedInTheOrderTheyCame) {
  api::JobStatus status;
  const auto set = [&](const char* type) {
    SetCondition(status, type, true, std::string("TFJob") + type, "m", kStart);
    return ConditionsOf(status);
  };
  EXPECT_EQ(set("Created"), "Created");
  EXPECT_EQ(set("Running"), "Created Running");
  EXPECT_EQ(set("Restarting"), "Created Restarting");
  EXPECT_EQ(set("Running"), "Created Running");
  EXPECT_EQ(set("Failed"), "Created Running- Failed");
  EXPECT_EQ(set("Running"), "Created Running- Failed");
  EXPECT_EQ(set("Succeeded"), "Created Running- Failed");
}

TEST(Conditions, TheSameAgainIsNoChange) {
  api::JobStatus status;
  SetCondition(status, "Running", true, "r", "first", kStart);
  const api::JobStatus before = status;
  SetCondition(status, "Running", true, "r", "second", kStart + 1h);
  EXPECT_EQ(status, before);
}

TEST(Conditions, AnotherReasonKeepsTheTransitionTime) {
  api::JobStatus status;
  SetCondition(status, "Running", true, "r", "m", kStart);
  SetCondition(status, "Running", true, "other", "m", kStart + 1h);
  EXPECT_EQ(status.conditions[0].last_transition, kStart);
  EXPECT_EQ(status.conditions[0].last_update, kStart + 1h);
  SetCondition(status, "Running", false, "other", "m", kStart + 2h);
  EXPECT_EQ(status.conditions[0].last_transition, kStart + 2h);
}

TEST(Conditions, TimesAreWholeSeconds) {
  api::JobStatus status;
  SetCondition(status, "Created", true, "r", "m", kStart + 999ms);
  EXPECT_EQ(status.conditions[0].last_update, kStart);
}

TEST(Conditions, SuccessTurnsRestartingToFalseToo) {
  api::JobStatus status;
  SetCondition(status, "Restarting", true, "r", "m", kStart);
  SetCondition(status, "Succeeded", true, "r", "m", kStart);
  EXPECT_EQ(ConditionsOf(status), "Restarting- Succeeded");
}

TEST(Conditions, HaveTheWordsOfTrainingOperator) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1s).End(kWorker0, 137).Settle().After(1s).End(kWorker0, 1).Settle();
  const auto message = [&](const char* type) {
    const api::Condition* c = api::FindCondition(world.job.status, type);
    return c ? c->reason + ": " + c->message : "none";
  };
  EXPECT_EQ(ConditionsOf(world.job.status), "Created Running- Failed");
  EXPECT_EQ(message("Created"), "TFJobCreated: TFJob mnist is created.");
  EXPECT_EQ(message("Running"), "TFJobRunning: TFJob ns/mnist is running.");
  EXPECT_EQ(message("Failed"),
            "TFJobFailed: job \"mnist\" is failing because \"Worker\" replica(s) failed.");
}

TEST(Conditions, AFailureUnderNeverCountsTheReplicas) {
  World world(MakeJob({.worker = 3}, RestartPolicy::kNever));
  world.Settle().End(kWorker0, 1).End(kWorker1, 1);
  EXPECT_EQ(world.Pass().events.back(),
            (Event{false, "TFJobFailed",
                   "TFJob ns/mnist has failed because 2 Worker replica(s) failed."}));
}

TEST(Conditions, AFailureUnderNeverCountsTheReplicasBesideAParameterServerToo) {
  World world(MakeJob({.ps = 1, .worker = 3}, RestartPolicy::kNever));
  world.Settle().End(kWorker0, 1).End(kWorker1, 1);
  EXPECT_EQ(world.Pass().events.back().message,
            "TFJob ns/mnist has failed because 2 Worker replica(s) failed.");
}

TEST(Events, OfARestartNameTheExitAndTheRole) {
  World world(MakeJob({.worker = 2}));
  world.Settle().End(kWorker1, 137);
  EXPECT_EQ(
      world.Pass().events,
      (std::vector{Event{false, "ExitedWithCode", "Pod: ns.mnist-worker-1 exited with code 137"},
                   Event{true, "TFJobRestarting",
                         "job mnist is restarting because Worker replica(s) failed."}}));
}

TEST(Events, OfSuccessComeOnce) {
  World world(MakeJob({.worker = 1}));
  world.Settle().End(kWorker0, 0);
  EXPECT_EQ(
      world.Pass().events,
      (std::vector{Event{false, "ExitedWithCode", "Pod: ns.mnist-worker-0 exited with code 0"},
                   Event{false, "TFJobSucceeded", "TFJob ns/mnist successfully completed."}}));
  EXPECT_TRUE(world.Pass().events.empty());
}

TEST(Counting, PendingIsNothingRunningActiveDeletingNeither) {
  World world(MakeJob({.worker = 4}, RestartPolicy::kNever));
  world.observed = Seen({Worker(0, Phase::kRunning), Worker(1, Phase::kPending),
                         Deleting(Worker(2, Phase::kRunning)), Worker(3, Phase::kSucceeded)});
  EXPECT_EQ(world.Pass().status.replica_statuses[Role::kWorker],
            (api::ReplicaStatus{.active = 1, .succeeded = 1}));
}

}  // namespace
}  // namespace core
