// Elastic jobs: what an ending means where data is handed out in shards, and how they end.
#include "core/elastic.h"

#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

api::Job Elastic(Counts counts, RestartPolicy policy = RestartPolicy::kExitCode) {
  api::Job job = MakeJob(counts, policy);
  job.extensions.elastic = api::Elastic{1, 8};
  return job;
}

DataView Data(int64_t todo, int64_t doing) {
  return {.registered = true,
          .complete = todo + doing == 0,
          .todo = todo,
          .doing = doing,
          .done = 10 - todo - doing,
          .records_left = 100 * (todo + doing),
          .records_total = 1000};
}

World Training(Counts counts, DataView data, RestartPolicy policy = RestartPolicy::kExitCode) {
  World world(Elastic(counts, policy));
  world.observed.data = std::move(data);
  world.Settle().After(1min);
  return world;
}

// ---- What an exit with 0 says

TEST(Finish, FollowsTheTable) {
  struct Row {
    const char* name;
    bool registered, complete, misled, unheard;
    int64_t todo, doing;
    Finish finish;
  };
  for (const Row& row : {
           Row{"an early stop", true, false, false, false, 5, 2, Finish::kDone},
           Row{"the end of the data", true, true, false, false, 0, 0, Finish::kDone},
           Row{"misled, shards to take", true, false, true, false, 1, 0, Finish::kReplace},
           Row{"misled, others at work", true, false, true, false, 0, 3, Finish::kWait},
           Row{"misled, and the others are through", true, true, true, false, 0, 0, Finish::kDone},
           Row{"misled, in a job without data", false, false, true, false, 0, 0, Finish::kDone},
           Row{"the master has not heard", true, true, false, true, 0, 0, Finish::kWait},
           Row{"nobody could go on", true, false, true, false, 0, 0, Finish::kDone},
       }) {
    const Member worker{kWorker1, 0};
    DataView data{.registered = row.registered,
                  .complete = row.complete,
                  .todo = row.todo,
                  .doing = row.doing};
    if (row.misled) data.misled = {worker};
    if (row.unheard) data.unheard = {worker};
    EXPECT_EQ(FinishOf(&data, Worker(1, Phase::kSucceeded)), row.finish) << row.name;
  }
  EXPECT_EQ(FinishOf(nullptr, Worker(1, Phase::kSucceeded)), Finish::kDone);
}

TEST(Elastic, OneThatWasMisledIsReplacedAndNotCounted) {
  World world = Training({.worker = 2}, Data(3, 1));
  world.job.spec.run_policy.backoff_limit = 0;
  world.observed.data->misled = {{kWorker1, 0}};
  world.End(kWorker1, 0).Settle();
  EXPECT_EQ(world.Live()[kWorker0], 0);
  EXPECT_GT(world.Live()[kWorker1], 0);
  EXPECT_EQ(world.job.status.restarts, 0);
  EXPECT_EQ(world.job.status.disruptions, 1);
  EXPECT_EQ(world.job.status.incidents.back().what,
            "ended before the data did, without knowing it");
}

TEST(Elastic, OneThatWasMisledWaitsWhileOthersHaveTheLastShards) {
  World world = Training({.worker = 2}, Data(0, 1));
  world.observed.data->misled = {{kWorker1, 0}};
  world.End(kWorker1, 0).Settle();
  EXPECT_FALSE(world.Live().contains(kWorker1));
  EXPECT_FALSE(world.job.status.completed.contains(kWorker1));
  world.observed.data = Data(1, 0);  // the other has died
  world.observed.data->misled = {{kWorker1, 0}};
  EXPECT_GT(world.Settle().Live()[kWorker1], 0);
}

TEST(Elastic, OneThatWasMisledIsDoneOnceTheDataIs) {
  World world = Training({.worker = 2}, Data(0, 1));
  world.observed.data->misled = {{kWorker1, 0}};
  world.End(kWorker1, 0).Settle();
  world.observed.data = Data(0, 0);
  world.observed.data->misled = {{kWorker1, 0}};
  world.Settle();
  EXPECT_TRUE(world.job.status.completed.contains(kWorker1));
  EXPECT_FALSE(api::IsTerminal(world.job.status)) << "worker 0 is still at work";
  world.End(kWorker0, 0).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Succeeded"));
  EXPECT_EQ(world.job.status.verdict->cause, "all records");
}

TEST(Elastic, AnEndingThatTheMasterHasNotHeardOfIsNotJudged) {
  World world = Training({.worker = 1}, Data(3, 1));
  world.observed.data->unheard = {{kWorker0, 0}};
  world.End(kWorker0, 0).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_TRUE(world.Live().empty());
  world.observed.data->unheard = {};
  EXPECT_TRUE(api::Has(world.Settle().job.status, "Succeeded"));
}

TEST(Elastic, AFailureIsJudgedWhateverTheMasterHasHeard) {
  World world = Training({.worker = 1}, Data(3, 1));
  world.observed.data->unheard = {{kWorker0, 0}};
  world.End(kWorker0, 1).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Failed"));
}

TEST(Elastic, AMisledChiefDoesNotEndTheJob) {
  World world = Training({.chief = 1, .ps = 1, .worker = 1}, Data(2, 1));
  world.observed.data->misled = {{kChief0, 0}};
  world.End(kChief0, 0).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_GT(world.Live()[kChief0], 0);
}

TEST(Elastic, AChiefThatStopsEarlyEndsTheJobAndTheVerdictSaysWhatWasLeft) {
  World world = Training({.chief = 1, .ps = 1, .worker = 1}, Data(2, 1));
  world.End(kChief0, 0).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Succeeded"));
  EXPECT_EQ(world.job.status.verdict->exit_status, 0);
  EXPECT_EQ(world.job.status.verdict->cause, "early stop with 300 of 1000 records left");
  EXPECT_TRUE(world.Live().empty()) << "parameter servers are stopped";
}

TEST(Elastic, WorkerZeroAloneDoesNotEndAJobWithData) {
  World world = Training({.worker = 2}, Data(5, 1));
  world.End(kWorker0, 0).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_EQ(world.Live(), (std::map<ReplicaId, int32_t>{{kWorker1, 0}}));
  world.observed.data.reset();  // nobody to ask any more: what was known stays known
  world.Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
}

TEST(Elastic, WithoutDataWorkerZeroDecidesAsEver) {
  World world = Training({.worker = 2}, {});
  world.End(kWorker0, 0).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Succeeded"));
  EXPECT_EQ(world.job.status.verdict->cause, "");
}

TEST(Elastic, AJobWhoseDataIsCompleteWaitsForItsWorkers) {
  World world = Training({.worker = 2}, Data(0, 0));
  world.After(1h).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_EQ(world.Live().size(), 2u);
}

TEST(Elastic, NobodyWaitsForAWorkerBeyondTheMinimumThatNeverGotAPlace) {
  World world = Training({.worker = 3}, Data(0, 0));
  world.job.extensions.elastic = api::Elastic{2, 8};
  world.Of(kWorker2).phase = Phase::kPending;
  world.End(kWorker0, 0).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status)) << "worker 1 is at work";
  world.End(kWorker1, 0).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Succeeded"));
  EXPECT_TRUE(world.Live().empty());
}

// Scaled down and up again: the one that leaves is of an attempt before the one that is wanted.
TEST(Elastic, AWorkerThatIsStillLeavingIsWaitedForThoughItsSuccessorHasNotBegun) {
  World world = Training({.worker = 2}, Data(3, 1));
  auto& wanted = world.job.spec.replicas[Role::kWorker].replicas;
  wanted = 1;
  world.Pass(/*perform=*/false);
  world.Of(kWorker1).leaving = true;
  wanted = 2;
  world.Pass(/*perform=*/false);
  ASSERT_GT(world.job.status.attempt, world.Of(kWorker1).attempt);
  world.observed.data = Data(0, 0);
  world.End(kWorker0, 0);
  world.Pass(/*perform=*/false);
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  world.End(kWorker1, 0).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Succeeded"));
}

TEST(Elastic, AMinimumThatWaitsForItsPlaceIsWaitedFor) {
  World world = Training({.worker = 2}, Data(0, 0));
  world.job.extensions.elastic = api::Elastic{2, 8};
  world.Of(kWorker1).phase = Phase::kPending;
  world.End(kWorker0, 0).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
}

TEST(Elastic, AWorkerWithoutAPlaceIsWaitedForWhileThereIsData) {
  World world = Training({.worker = 2}, Data(3, 0));
  world.Of(kWorker1).phase = Phase::kPending;
  world.End(kWorker0, 0).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
}

TEST(Elastic, AWorkerThatHasSeenTheEndOfTheDataIsDoneUnderAlways) {
  World world = Training({.chief = 1, .worker = 1}, Data(0, 0), RestartPolicy::kAlways);
  world.End(kWorker0, 0).Settle();
  EXPECT_FALSE(world.Live().contains(kWorker0));
  EXPECT_EQ(world.job.status.restarts, 0);
}

TEST(Elastic, TheVerdictNamesWhatWasSetAside) {
  World world = Training({.worker = 1}, Data(0, 0));
  world.observed.data->quarantined = 64;
  world.End(kWorker0, 0).Settle();
  EXPECT_EQ(world.job.status.verdict->cause,
            "all records but 64, set aside because every try at them failed");
  EXPECT_EQ(world.job.status.verdict->advice, "trainyard audit mnist");
}

TEST(Elastic, DataThatCannotBeServedEndsTheJob) {
  World world = Training({.worker = 1}, Data(2, 1));
  world.observed.data->broken = "the ledger is damaged at byte 77";
  world.Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Failed"));
  EXPECT_EQ(world.job.status.verdict->cause,
            "the data cannot be handed out: the ledger is damaged at byte 77");
}

// ---- Deaths

TEST(Elastic, AWorkerThatIsKilledIsReplacedAndNotCounted) {
  for (const int32_t code : {129, 130, 137, 143}) {
    World world = Training({.worker = 2}, Data(5, 2), RestartPolicy::kNever);
    world.job.spec.run_policy.backoff_limit = 0;
    world.End(kWorker1, code).Settle();
    EXPECT_GT(world.Live()[kWorker1], 0) << code;
    EXPECT_EQ(world.job.status.restarts, 0) << code;
    EXPECT_EQ(world.job.status.disruptions, 1) << code;
  }
}

TEST(Elastic, KillsInARowArePausedLikeDisruptions) {
  World world = Training({.worker = 1}, Data(5, 2));
  for (int i = 0; i < 3; ++i) world.Crash(kWorker0);
  EXPECT_EQ(world.job.status.units[kWorker0].disruptions_in_row, 3);
  EXPECT_EQ(world.job.status.units[kWorker0].not_before, world.now + 2s);
}

TEST(Elastic, WhatAProgramDoesToItselfCounts) {
  for (const int32_t code : {1, 134, 136, 139}) {
    World world = Training({.worker = 2}, Data(5, 2), RestartPolicy::kOnFailure);
    world.End(kWorker1, code).Settle();
    EXPECT_EQ(world.job.status.restarts, 1) << code;
  }
  World world = Training({.worker = 2}, Data(5, 2));
  world.End(kWorker1, 137);
  world.observed.replicas[1].ending->memory_limit_by = "polling";
  world.Settle();
  EXPECT_EQ(world.job.status.restarts, 1) << "out of memory";
}

TEST(Elastic, OnlyWorkersAreLent) {
  World world = Training({.chief = 1, .ps = 1, .worker = 1}, Data(5, 2));
  world.End(kChief0, 137).Settle();
  EXPECT_EQ(world.job.status.restarts, 1);
}

// ---- Coming and going

TEST(Elastic, AWorkerThatIsScaledAwayMayFinishWhatItHas) {
  World world = Training({.worker = 2}, Data(5, 2));
  world.job.spec.replicas[Role::kWorker].replicas = 1;
  EXPECT_EQ(ActionsOf<Stop>(world.Pass(/*perform=*/false)),
            (std::vector{Stop{kWorker1, "worker-1@0", true, true}}));
  world.Of(kWorker1).leaving = true;
  EXPECT_TRUE(world.Pass(false).actions.empty());
  world.job.spec.run_policy.suspend = true;  // now it must go
  EXPECT_EQ(ActionsOf<Stop>(world.Pass(false)),
            (std::vector{Stop{kWorker0, "worker-0@0"}, Stop{kWorker1, "worker-1@0"}}));
}

TEST(Elastic, TheEvaluatorHasAMomentForTheLastCheckpoint) {
  World world = Training({.chief = 1, .ps = 1, .worker = 1, .evaluator = 1}, Data(0, 0));
  world.End(kChief0, 0).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Succeeded"));
  EXPECT_EQ(world.Live(), (std::map<ReplicaId, int32_t>{{kEvaluator0, 0}}));
  EXPECT_EQ(world.Pass().look_again, *world.job.status.completion_time + kLastEvaluation);
  world.After(kLastEvaluation);
  EXPECT_EQ(ActionsOf<Stop>(world.Pass()), (std::vector{Stop{kEvaluator0, "evaluator-0@0"}}));
  EXPECT_EQ(world.job.status.replica_statuses[Role::kEvaluator].succeeded, 1);
}

TEST(Elastic, NothingIsLeftRunningOnAClusterEither) {
  World world = Training({.chief = 1, .ps = 1, .worker = 1, .evaluator = 1}, Data(0, 0));
  world.policy.end_leftovers = false;
  world.End(kChief0, 0).Settle().After(kLastEvaluation).Settle();
  EXPECT_TRUE(world.Live().empty());
}

// ---- Names

TEST(WorkerNumber, OfTheFirstAttemptIsTheIndex) {
  EXPECT_EQ(WorkerNumber(kWorker0, 0), 0);
  EXPECT_EQ(WorkerNumber(kWorker2, 0), 2);
  EXPECT_EQ(WorkerNumber(kWorker0, 2), 131072);
}

TEST(WorkerNumber, IsNeverThatOfAnother) {
  std::set<int32_t> numbers;
  int32_t count = 0;
  for (Role role : {Role::kWorker, Role::kChief, Role::kEvaluator}) {
    for (int32_t index : {0, 1, 2, 9999}) {
      for (int32_t attempt : {0, 1, 2, 32767}) {
        EXPECT_GE(WorkerNumber({role, index}, attempt), 0);
        numbers.insert(WorkerNumber({role, index}, attempt));
        ++count;
      }
    }
  }
  EXPECT_EQ(std::ssize(numbers), count);
}

TEST(MemberName, IsReadBack) {
  EXPECT_EQ(MemberName(kWorker1, 7), "worker-1@7");
  EXPECT_EQ(MemberFrom("worker-1@7"), (Member{kWorker1, 7}));
  for (const char* text : {"", "worker-1", "worker-1@", "@1", "worker-1@-1", "shelf-1@0"}) {
    EXPECT_EQ(MemberFrom(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace core
