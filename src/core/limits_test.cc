// Limits: of restarts, of time, of what is left behind.
#include <gtest/gtest.h>

#include "core/restart_policy.h"
#include "core/testing.h"
#include "core/verdict.h"

namespace core {
namespace {

using namespace core::testing;

TEST(BackoffLimit, FailsTheJobOnceItsRestartsAreSpent) {
  for (const int32_t limit : {0, 1, 2}) {
    World world(MakeJob({.worker = 2}));
    world.job.spec.run_policy.backoff_limit = limit;
    for (int32_t i = 0; i <= limit; ++i) {
      EXPECT_FALSE(api::IsTerminal(world.job.status));
      world.Crash(kWorker1);
    }
    EXPECT_EQ(api::FindCondition(world.job.status, "Failed")->message,
              "Job mnist has failed because it has reached the specified backoff limit");
    EXPECT_EQ(world.job.status.restarts, limit);
    EXPECT_EQ(world.job.status.verdict->exit_status, kExitByLimit);
    EXPECT_TRUE(world.Live().empty());
  }
}

TEST(BackoffLimit, UnsetMeansNoEnd) {
  World world(MakeJob({.worker = 2}));
  for (int i = 0; i < 50; ++i) world.Crash(kWorker1);
  EXPECT_EQ(world.job.status.restarts, 50);
  EXPECT_FALSE(api::IsTerminal(world.job.status));
}

TEST(BackoffLimit, CountsReplicasRestartedAloneToo) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 2}));
  world.job.spec.run_policy.backoff_limit = 2;
  world.Settle().After(1s).End(kWorker0, 137).Settle().After(1s).End(kWorker1, 137).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  world.After(1s).End(kPs0, 137).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Failed"));
}

TEST(BackoffLimit, MayBeRaisedWhileTheJobRuns) {
  World world(MakeJob({.worker = 1}));
  world.job.spec.run_policy.backoff_limit = 0;
  world.Settle();
  world.job.spec.run_policy.backoff_limit = 1;
  world.After(1s).End(kWorker0, 137).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
}

// Worker 0 exits with the status of TensorFlow's preemption handler, after 10 s.
World& Preempt(World& world) {
  return world.Settle().After(10s).End(kWorker0, kPreemptedExit).Settle().After(5min).Settle();
}

TEST(Preemption, ReportedByTheProgramAloneFailsTheJobOnceItHasNoProgressTenTimes) {
  World world(MakeJob({.worker = 2}));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(api::IsTerminal(Preempt(world).job.status)) << i;
  ASSERT_TRUE(api::Has(Preempt(world).job.status, "Failed"));
  EXPECT_EQ(world.job.status.verdict->cause,
            "worker/0 exited with status 42 (42 means preempted) 11 times in a row without "
            "progress");
  EXPECT_EQ(world.job.status.verdict->exit_status, kExitByLimit);
  EXPECT_EQ(world.job.status.disruptions, 10);
}

TEST(Preemption, OfATrainingThatGetsOnHasNoLimit) {
  World world(MakeJob({.worker = 2}));
  for (int64_t i = 1; i < 30; ++i) {
    world.observed.progress.step = i;
    EXPECT_FALSE(api::IsTerminal(Preempt(world).job.status)) << i;
  }
  World lasting(MakeJob({.worker = 2}));
  for (int i = 0; i < 30; ++i) lasting.Settle().After(10min).End(kWorker0, kPreemptedExit).Settle();
  EXPECT_FALSE(api::IsTerminal(lasting.job.status));
}

TEST(Preemption, ThatTheClusterReportsHasNoLimit) {
  World world(MakeJob({.worker = 2}));
  for (int i = 0; i < 30; ++i) {
    world.Settle().After(10s).End(kWorker0, kPreemptedExit);
    world.After(1s).Disrupt(kWorker1).Settle().After(5min);
  }
  EXPECT_FALSE(api::IsTerminal(world.Settle().job.status));
}

TEST(Preemption, IsForgottenOnceSomethingElseHappens) {
  World world(MakeJob({.worker = 2}));
  for (int i = 0; i < 10; ++i) Preempt(world);
  world.Crash(kWorker0).After(5min);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(api::IsTerminal(Preempt(world).job.status)) << i;
}

TEST(Deadline, HasATimer) {
  World world(MakeJob({.worker = 2}));
  world.job.spec.run_policy.active_deadline_seconds = 60;
  world.Settle();
  EXPECT_EQ(Reconcile(world.job, world.observed, {}, world.now).look_again, kStart + 60s);
  EXPECT_FALSE(api::IsTerminal(world.After(60s - 1us).Settle().job.status));
  world.After(1us).Settle();
  EXPECT_EQ(api::FindCondition(world.job.status, "Failed")->message,
            "Job mnist has failed because it was active longer than specified deadline");
  EXPECT_EQ(world.job.status.verdict->exit_status, kExitByLimit);
  EXPECT_TRUE(world.Live().empty());
}

TEST(Deadline, OfZeroIsPastAtOnce) {
  World world(MakeJob({.worker = 2}));
  world.job.spec.run_policy.active_deadline_seconds = 0;
  EXPECT_TRUE(api::Has(world.Settle().job.status, "Failed"));
  EXPECT_TRUE(world.observed.replicas.empty());
}

TEST(Deadline, OfTheLargestNumberMeansNever) {
  World world(MakeJob({.worker = 2}));
  world.job.spec.run_policy.active_deadline_seconds = INT64_MAX;
  EXPECT_FALSE(api::IsTerminal(world.Settle().After(1h).Settle().job.status));
}

TEST(Deadline, DoesNotRunWhileSuspended) {
  World world(MakeJob({.worker = 2}));
  world.job.spec.run_policy.active_deadline_seconds = 60;
  world.Settle();
  world.job.spec.run_policy.suspend = true;
  world.After(30s).Settle().After(1h).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  world.job.spec.run_policy.suspend = false;
  world.Settle().After(59s).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_TRUE(api::Has(world.After(1s).Settle().job.status, "Failed"));
}

TEST(Deadline, EndsAHealthyGangWithGrace) {
  api::Job job = MakeJob({.worker = 1});
  job.spec.run_policy.active_deadline_seconds = 1;
  job.status.start_time = kStart;
  const Decision d = Reconcile(job, Seen({Worker(0, Phase::kRunning)}), {}, kStart + 2s);
  EXPECT_EQ(ActionsOf<Stop>(d), (std::vector{Stop{kWorker0, "worker-0@0", true}}));
}

api::Job WithStartDeadline(Counts counts) {
  api::Job job = MakeJob(counts);
  job.extensions.start_deadline = 60s;
  return job;
}

TEST(StartDeadline, FailsAGangOfWhichOneNeverComesUp) {
  World world(WithStartDeadline({.worker = 3}));
  world.Settle().Of(kWorker2).phase = Phase::kPending;
  world.Settle();
  EXPECT_EQ(Reconcile(world.job, world.observed, {}, world.now).look_again, kStart + 60s);
  world.After(60s).Settle();
  ASSERT_TRUE(api::Has(world.job.status, "Failed"));
  EXPECT_EQ(world.job.status.verdict->cause,
            "not all replicas were up within the start deadline; missing: worker/2");
}

TEST(StartDeadline, IsMetByAllBeingUp) {
  World world(WithStartDeadline({.worker = 3}));
  world.Settle().After(1h).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
}

TEST(StartDeadline, BeginsAnewWithEachAttempt) {
  World world(WithStartDeadline({.worker = 1}));
  world.Settle().After(1h).End(kWorker0, 137).Settle().Of(kWorker0).phase = Phase::kPending;
  world.Settle();
  EXPECT_FALSE(api::IsTerminal(world.After(59s).Settle().job.status));
  EXPECT_TRUE(api::Has(world.After(1s).Settle().job.status, "Failed"));
}

TEST(StartDeadline, DoesNotEndAJobThatWasDisrupted) {
  World world(WithStartDeadline({.worker = 1}));
  world.Settle().After(1h).Disrupt(kWorker0).Settle().Of(kWorker0).phase = Phase::kPending;
  world.Settle().After(1h).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
}

TEST(StartDeadline, DoesNotWaitForEvaluatorsNorForMoreThanAnElasticMinimum) {
  World world(WithStartDeadline({.worker = 3, .evaluator = 1}));
  world.job.extensions.elastic = api::Elastic{2, 4};
  world.Settle();
  world.Of(kWorker2).phase = world.Of(kEvaluator0).phase = Phase::kPending;
  world.After(1h).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  world.Of(kWorker1).phase = Phase::kPending;
  EXPECT_TRUE(api::Has(world.Settle().job.status, "Failed"));
}

TEST(TimeToLive, DeletesTheJobAtTheExactMoment) {
  World world(MakeJob({.worker = 1}));
  world.job.spec.run_policy.ttl_seconds_after_finished = 30;
  world.Settle().End(kWorker0, 0).Settle();
  EXPECT_EQ(Reconcile(world.job, world.observed, {}, world.now).look_again, kStart + 30s);
  world.After(30s - 1us).Pass();
  EXPECT_FALSE(world.deleted);
  world.After(1us).Pass();
  EXPECT_TRUE(world.deleted);
}

// The next controller starts under a clock that was set back.
TEST(TimeToLive, IsNotLongerWhenTheClockIsSetBack) {
  World world(MakeJob({.worker = 1}));
  world.job.spec.run_policy.ttl_seconds_after_finished = 30;
  world.Settle().After(2h).End(kWorker0, 0).Settle();
  world.After(-1h).Pass();
  EXPECT_FALSE(world.deleted);
  world.After(30s).Pass();
  EXPECT_TRUE(world.deleted);
}

TEST(TimeToLive, OfZeroDeletesAtOnce) {
  World world(MakeJob({.worker = 1}));
  world.job.spec.run_policy.ttl_seconds_after_finished = 0;
  world.Settle().End(kWorker0, 0).Pass();
  EXPECT_TRUE(world.deleted);
}

TEST(TimeToLive, WaitsForWhatStillRunsOnThisMachine) {
  World world(MakeJob({.worker = 2}));
  world.job.spec.run_policy.ttl_seconds_after_finished = 0;
  world.Settle().End(kWorker0, 0).Pass();
  EXPECT_FALSE(world.deleted);
  world.End(kWorker1, 0).Pass();
  EXPECT_TRUE(world.deleted);
}

TEST(TimeToLive, UnsetKeepsTheJob) {
  World world(MakeJob({.worker = 1}));
  world.Settle().End(kWorker0, 0).Settle().After(10000h).Settle();
  EXPECT_FALSE(world.deleted);
}

struct CleanRow {
  api::CleanPodPolicy policy;
  bool end_leftovers;
  size_t left, live;
};

TEST(CleanUp, FollowsCleanPodPolicyOnAClusterAndLeavesNothingRunningHere) {
  using enum api::CleanPodPolicy;
  for (const CleanRow& row :
       {CleanRow{kNone, false, 3, 2}, CleanRow{kRunning, false, 3, 0}, CleanRow{kAll, false, 0, 0},
        CleanRow{kNone, true, 3, 0}, CleanRow{kRunning, true, 3, 0}, CleanRow{kAll, true, 0, 0}}) {
    for (const bool fails : {false, true}) {
      for (const bool by_wish : {false, true}) {
        World world(MakeJob({.chief = 1, .ps = 1, .worker = 1}));
        world.job.spec.run_policy.clean_pod_policy = row.policy;
        world.policy.end_leftovers = row.end_leftovers && !by_wish;
        world.job.extensions.end_leftovers = row.end_leftovers && by_wish;
        world.Settle().End(kChief0, fails ? 1 : 0).Settle();
        EXPECT_EQ(world.observed.replicas.size(), row.left);
        EXPECT_EQ(world.Live().size(), row.live);
      }
    }
  }
}

TEST(CleanUp, LetsPeersOfASuccessfulGangEndByThemselves) {
  World world(MakeJob({.worker = 2, .evaluator = 1}));
  world.Settle().End(kWorker0, 0);
  const Decision d = world.Pass();
  EXPECT_EQ(ActionsOf<Stop>(d), (std::vector{Stop{kEvaluator0, "evaluator-0@0", true}}));
  EXPECT_EQ(d.look_again, kStart + 10s);
  EXPECT_EQ(StoppedIds(world.After(10s).Pass()), (std::vector{kWorker1}));
}

TEST(CleanUp, OfABrokenGangGivesNoGraceButToTheEvaluator) {
  World world(MakeJob({.worker = 2, .evaluator = 1}));
  world.Settle().End(kWorker0, 1);
  EXPECT_EQ(ActionsOf<Stop>(world.Pass()), (std::vector{Stop{kEvaluator0, "evaluator-0@0", true},
                                                        Stop{kWorker1, "worker-1@0", false}}));
}

TEST(CleanUp, AnEndedJobWithoutACompletionTimeGetsOne) {
  World world(MakeJob({.worker = 1}));
  world.job.status.conditions = {{.type = "Succeeded"}};
  world.observed = Seen({Worker(0, Phase::kRunning)});
  EXPECT_EQ(world.Settle().job.status.completion_time, kStart);
}

}  // namespace
}  // namespace core
