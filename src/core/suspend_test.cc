// Suspend and resume (training-operator's G2, G3), stop and revival.
#include <gtest/gtest.h>

#include "core/endings.h"
#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

api::JobStatus& Suspend(World& world, bool on) {
  world.job.spec.run_policy.suspend = on;
  return world.Settle().job.status;
}

TEST(Suspend, AJobCreatedSuspendedStartsNothing) {
  World world(MakeJob({.worker = 2}));
  EXPECT_EQ(ConditionsOf(Suspend(world, true)), "Created Suspended");
  EXPECT_FALSE(world.job.status.start_time);
  EXPECT_TRUE(world.observed.replicas.empty());
}

TEST(Suspend, ResumesAJobCreatedSuspended) {
  World world(MakeJob({.worker = 2}));
  Suspend(world, true);
  world.After(1min);
  EXPECT_EQ(ConditionsOf(Suspend(world, false)), "Created Suspended- Running");
  EXPECT_EQ(world.job.status.start_time, kStart + 1min);
  EXPECT_EQ(world.Live().size(), 2u);
}

TEST(Suspend, EndsEverybodyAndResumesThemWithTheSameNames) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 2, .evaluator = 1}));
  world.Settle();
  EXPECT_EQ(ConditionsOf(world.job.status), "Created Running");
  world.After(1min);
  EXPECT_EQ(ConditionsOf(Suspend(world, true)), "Created Running- Suspended");
  EXPECT_EQ(api::FindCondition(world.job.status, "Running")->reason, "TFJobSuspended");
  EXPECT_EQ(api::FindCondition(world.job.status, "Suspended")->message,
            "TFJob mnist is suspended.");
  EXPECT_TRUE(world.observed.replicas.empty());
  EXPECT_EQ(world.job.status.start_time, kStart);
  for (const auto& [role, counts] : world.job.status.replica_statuses) EXPECT_EQ(counts.active, 0);
  world.After(1min);
  EXPECT_EQ(ConditionsOf(Suspend(world, false)), "Created Suspended- Running");
  EXPECT_EQ(api::FindCondition(world.job.status, "Suspended")->reason, "TFJobResumed");
  EXPECT_EQ(world.job.status.start_time, kStart + 2min);
  EXPECT_EQ(world.Live().size(), 5u);
  EXPECT_EQ(world.job.status.restarts + world.job.status.disruptions, 0);
}

TEST(Suspend, TellsOfItOnce) {
  World world(MakeJob({.worker = 1}));
  world.job.spec.run_policy.suspend = true;
  EXPECT_EQ(world.Pass().events,
            (std::vector{Event{false, "TFJobSuspended", "TFJob mnist is suspended."}}));
  EXPECT_TRUE(world.Pass().events.empty());
}

TEST(Suspend, IsGracefulAndIgnoresCleanPodPolicy) {
  World world(MakeJob({.worker = 2}));
  world.Settle().End(kWorker1, 0).Settle();
  world.job.spec.run_policy.suspend = true;
  EXPECT_EQ(world.Pass().actions, (std::vector<Action>{Stop{kWorker0, "worker-0@0", true},
                                                       Remove{kWorker1, "worker-1@0"}}));
}

TEST(Suspend, NobodyOfTheOldGenerationIsTakenForANewOneAfterResume) {
  World world(MakeJob({.worker = 2}));
  world.Settle();
  world.job.spec.run_policy.suspend = true;
  world.Pass(/*perform=*/false);  // published, then the controller dies
  world.job.spec.run_policy.suspend = false;
  const Decision d = world.Pass();
  EXPECT_EQ(StoppedIds(d), (std::vector{kWorker0, kWorker1}));
  EXPECT_TRUE(Started(d).empty());
  EXPECT_EQ(world.Settle().Live()[kWorker0], 1);
}

TEST(Suspend, WaitsForNoEndingOfThoseItEnded) {
  World world(MakeJob({.worker = 2}));
  world.Settle();
  const ReplicaState ended = Exited(Worker(0, Phase::kFailed), 143);
  EXPECT_FALSE(IsTakenIn(world.job, world.job.status, ended));
  EXPECT_TRUE(IsTakenIn(world.job, Suspend(world, true), ended));
}

TEST(Suspend, DuringBackoffForgetsTheRestartingCondition) {
  World world(MakeJob({.worker = 2}));
  for (int i = 0; i < 3; ++i) world.Crash(kWorker0);
  EXPECT_EQ(ConditionsOf(world.job.status), "Created Restarting");
  EXPECT_EQ(ConditionsOf(Suspend(world, true)), "Created Running- Suspended");
  EXPECT_EQ(ConditionsOf(Suspend(world, false)), "Created Suspended- Running");
  EXPECT_EQ(world.job.status.restarts, 3);
}

TEST(Suspend, HasNoEffectOnAFinishedJob) {
  World world(MakeJob({.worker = 1}));
  world.Settle().End(kWorker0, 0).Settle();
  const api::JobStatus final = world.job.status;
  EXPECT_EQ(Suspend(world, true), final);
}

TEST(Suspend, AJobThatFinishesInTheSamePassSucceeds) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min).End(kWorker0, 0);
  EXPECT_EQ(ConditionsOf(Suspend(world, true)), "Created Running- Succeeded");
  const api::JobStatus final = world.job.status;
  EXPECT_EQ(Suspend(world, false), final);
  EXPECT_FALSE(world.Live().contains(kWorker0));
}

// The ending and the deletion cross: the replica finishes before it receives SIGTERM.
TEST(Suspend, AJobThatFinishesWhileItIsBeingSuspendedSucceeds) {
  World world(MakeJob({.worker = 2}));
  world.job.spec.success_policy = api::SuccessPolicy::kAllWorkers;
  world.Settle().After(1min);
  world.job.spec.run_policy.suspend = true;
  world.Pass(/*perform=*/false);
  EXPECT_TRUE(api::Has(world.job.status, "Suspended"));
  world.End(kWorker0, 0).Pass(/*perform=*/false);
  world.Vanish(kWorker0).End(kWorker1, 0).Pass();
  EXPECT_EQ(ConditionsOf(world.job.status), "Created Running- Suspended- Succeeded");
}

// The controller was away while the job finished, was suspended and was resumed.
TEST(Suspend, AResumedJobWhoseOldReplicasHadFinishedSucceeds) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min);
  world.job.spec.run_policy.suspend = true;
  world.Pass(/*perform=*/false);
  world.End(kWorker0, 0);
  world.job.spec.run_policy.suspend = false;
  world.Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Succeeded"));
  EXPECT_EQ(world.job.status.attempt, 0);
}

TEST(Suspend, AReplicaThatExitsWithZeroBecauseItIsStoppedHasNotFinished) {
  World world(MakeJob({.worker = 2}));
  world.Settle();
  world.job.spec.run_policy.suspend = true;
  world.Pass(/*perform=*/false);
  world.End(kWorker0, 0).observed.replicas[0].ending->stopped = true;
  world.Settle();
  EXPECT_EQ(ConditionsOf(world.job.status), "Created Running- Suspended");
}

TEST(Suspend, NoLimitIsJudgedMeanwhile) {
  World world(MakeJob({.worker = 2}));
  world.job.spec.run_policy.backoff_limit = 0;
  world.Settle();
  world.job.spec.run_policy.suspend = true;
  world.End(kWorker0, 137).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
}

TEST(StoppedJob, IsFailedInNobodysFaultAndEndsWithGrace) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min);
  world.job.status = Stopped(world.job, "ann", world.now);
  EXPECT_EQ(ConditionsOf(world.job.status), "Created Running- Failed");
  EXPECT_EQ(world.job.status.verdict,
            (api::Verdict{"stopped", "stopped by ann", "trainyard resume mnist", 65}));
  EXPECT_EQ(world.job.status.completion_time, world.now);
  const Decision d = world.Pass();
  EXPECT_EQ(ActionsOf<Stop>(d),
            (std::vector{Stop{kWorker0, "worker-0@0", true}, Stop{kWorker1, "worker-1@0", true}}));
  EXPECT_TRUE(world.Settle().Live().empty());
}

TEST(StoppedJob, HasSucceededIfItsSuccessIsSeenInTheSamePass) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min).End(kWorker0, 0);
  world.job.extensions.stopped_by = "ann";
  EXPECT_TRUE(api::Has(world.Settle().job.status, "Succeeded"));
  EXPECT_EQ(world.job.status.verdict->result, "succeeded");
}

TEST(StoppedJob, KeepsTheGraceOfTheSecondWhenTheFirstHasEnded) {
  World world(MakeJob({.worker = 2}));
  world.Settle();
  world.job.status = Stopped(world.job, "ann", world.now);
  world.End(kWorker0, 143).observed.replicas[0].ending->stopped = true;
  EXPECT_EQ(ActionsOf<Stop>(world.Pass()), (std::vector{Stop{kWorker1, "worker-1@0", true}}));
}

TEST(StoppedJob, LeavesAnEndedOneAsItIs) {
  World world(MakeJob({.worker = 1}));
  world.Settle().End(kWorker0, 0).Settle();
  EXPECT_EQ(Stopped(world.job, "ann", world.now), world.job.status);
}

TEST(StoppedJob, IsNotSuspendedAnyMore) {
  World world(MakeJob({.worker = 1}));
  Suspend(world, true);
  world.job.status = Stopped(world.job, "ann", world.now);
  EXPECT_EQ(ConditionsOf(world.job.status), "Created Suspended- Failed");
}

TEST(RevivedJob, RunsAgainWithItsLimitsAfreshAndItsHistoryKept) {
  World world(MakeJob({.worker = 2, .evaluator = 1}));
  world.job.spec.run_policy.backoff_limit = 1;
  for (int i = 0; i < 2; ++i) world.Crash(kWorker0);
  ASSERT_TRUE(api::Has(world.job.status, "Failed"));
  const int32_t before = world.job.status.attempt;
  world.After(1h);
  world.job.status = Revived(world.job, world.now);
  world.Settle();
  EXPECT_EQ(ConditionsOf(world.job.status), "Created Running");
  EXPECT_EQ(world.job.status.restarts, 0);
  EXPECT_EQ(world.job.status.start_time, world.now);
  EXPECT_EQ(world.job.status.incidents.size(), 2u);
  EXPECT_FALSE(world.job.status.verdict || world.job.status.completion_time);
  EXPECT_EQ(world.Live(),
            (std::map<ReplicaId, int32_t>{
                {kWorker0, before + 1}, {kWorker1, before + 1}, {kEvaluator0, before + 1}}));
}

TEST(RevivedJob, WaitsForTheOldGenerationToEnd) {
  World world(MakeJob({.worker = 2}));
  world.Settle();
  world.job.status = Stopped(world.job, "ann", world.now);
  world.job.status = Revived(world.job, world.now);
  const Decision d = world.Pass();
  EXPECT_TRUE(Started(d).empty());
  EXPECT_EQ(StoppedIds(d), (std::vector{kWorker0, kWorker1}));
  EXPECT_EQ(world.Settle().Live().size(), 2u);
  EXPECT_EQ(world.job.status.disruptions, 0);
}

// Found by the simulator, seed 59480.
TEST(RevivedJob, DoesNotReuseTheAttemptOfAnEvaluatorThatWasScaledAwayMeanwhile) {
  World world(MakeJob({.worker = 1, .evaluator = 1}));
  Suspend(world, true);
  Suspend(world, false);
  const int32_t before = world.Live()[kEvaluator0];
  Suspend(world, true);
  world.job.spec.replicas[Role::kEvaluator].replicas = 0;
  world.job.status = Stopped(world.job, "ann", world.now);
  world.job.status = Revived(world.job, world.now);
  world.job.spec.replicas[Role::kEvaluator].replicas = 1;
  Suspend(world, false);
  EXPECT_GT(world.Live()[kEvaluator0], before);
}

TEST(RevivedJob, ThatSucceededStaysSucceeded) {
  World world(MakeJob({.worker = 1}));
  world.Settle().End(kWorker0, 0).Settle();
  EXPECT_EQ(Revived(world.job, world.now), world.job.status);
}

}  // namespace
}  // namespace core
