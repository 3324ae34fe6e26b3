// Jobs that another operator has begun: its status has none of our memory, and its replicas carry
// no attempt.
#include <gtest/gtest.h>

#include "core/endings.h"
#include "core/testing.h"
#include "core/verdict.h"

namespace core {
namespace {

using namespace core::testing;

// As training-operator v1.9 leaves a job of two workers that run.
struct Theirs : World {
  explicit Theirs(RestartPolicy restart = RestartPolicy::kOnFailure)
      : World(MakeJob({.worker = 2}, restart)) {
    job.status.conditions = {{"Created", true, "TFJobCreated", "", kStart, kStart},
                             {"Running", true, "TFJobRunning", "", kStart, kStart}};
    job.status.start_time = kStart;
    job.status.replica_statuses[Role::kWorker] = {.active = 2};
    observed = Seen({Worker(0, Phase::kRunning), Worker(1, Phase::kRunning)});
    now = kStart + 1h;
  }
};

TEST(Takeover, AJobThatRunsGoesOn) {
  Theirs world;
  const auto conditions = world.job.status.conditions;
  EXPECT_TRUE(world.Pass().actions.empty());
  EXPECT_EQ(world.job.status.conditions, conditions);
  EXPECT_EQ(world.job.status.start_time, kStart);
  EXPECT_EQ(world.job.status.shape, (std::map<Role, int32_t>{{Role::kWorker, 2}}));
}

TEST(Takeover, WhatEndedWhileNobodyLookedIsTakenIn) {
  Theirs world;
  world.End(kWorker0, 0).Settle();
  EXPECT_EQ(ConditionsOf(world.job.status), "Created Running- Succeeded");
}

TEST(Takeover, WhatOursRestartedBeforeAnotherOperatorWroteOverItsMemoryGoesOn) {
  Theirs world;
  world.observed = Seen({Worker(0, Phase::kRunning, 2), Worker(1, Phase::kRunning, 3)});
  EXPECT_TRUE(world.Pass().actions.empty());
  world.After(1s).End(kWorker1, 137).Settle();
  EXPECT_EQ(world.Live(), (std::map<ReplicaId, int32_t>{{kWorker0, 4}, {kWorker1, 4}}));
}

TEST(Takeover, AFailureIsAnsweredByOurRules) {
  Theirs world(RestartPolicy::kExitCode);
  world.End(kWorker1, 137).Settle();
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_EQ(world.Live(), (std::map<ReplicaId, int32_t>{{kWorker0, 1}, {kWorker1, 1}}));
}

TEST(Takeover, AJobThatHasEndedIsNotRunAgain) {
  Theirs world;
  world.job.status.conditions[1].status = false;
  world.job.status.conditions.push_back({"Succeeded", true, "TFJobSucceeded", "", kStart, kStart});
  world.observed = Seen({});
  EXPECT_TRUE(world.Pass().actions.empty());
}

TEST(Takeover, ASuspendedJobIsResumedLikeAnyOther) {
  Theirs world;
  world.job.status.conditions = {{"Created", true, "TFJobCreated", "", kStart, kStart},
                                 {"Suspended", true, "TFJobSuspended", "", kStart, kStart}};
  world.observed = Seen({});
  world.job.spec.run_policy.suspend = true;
  EXPECT_TRUE(world.Pass().actions.empty());
  world.job.spec.run_policy.suspend = false;
  world.Settle();
  EXPECT_EQ(world.Live().size(), 2u);
  EXPECT_EQ(ConditionsOf(world.job.status), "Created Suspended- Running");
}

TEST(Takeover, RestartsInPlaceCountAgainstTheLimit) {
  Theirs world;
  world.job.spec.run_policy.backoff_limit = 2;
  world.observed.replicas[0].restarts_in_place = 1;
  world.observed.replicas[1].restarts_in_place = 1;
  EXPECT_FALSE(api::IsTerminal(world.Settle().job.status));
  world.observed.replicas[1].restarts_in_place = 2;
  world.Settle();
  EXPECT_EQ(api::FindCondition(world.job.status, "Failed")->message,
            "Job mnist has failed because it has reached the specified backoff limit");
  EXPECT_EQ(world.job.status.verdict->exit_status, kExitByLimit);
}

TEST(Takeover, RestartsInPlaceAreRememberedWhenTheirPodMakesWay) {
  Theirs world;
  world.job.spec.run_policy.backoff_limit = 3;
  world.observed.replicas[0].restarts_in_place = 2;
  world.End(kWorker1, 137).Settle();
  EXPECT_EQ(world.job.status.restarts, 3);
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  world.Crash(kWorker1);
  EXPECT_TRUE(api::Has(world.job.status, "Failed"));
}

TEST(Takeover, RestartsInPlaceWithoutALimitAreNobodysBusiness) {
  Theirs world;
  world.observed.replicas[0].restarts_in_place = 99;
  EXPECT_TRUE(world.Pass().actions.empty());
  EXPECT_EQ(world.job.status.restarts, 0);
}

TEST(Takeover, WhatLivesIsAwaitedAndWhatMakesWayIsNot) {
  Theirs world;
  world.Settle();
  EXPECT_TRUE(IsAwaited(world.job, world.job.status, world.Of(kWorker0)));
  const ReplicaState old = world.Of(kWorker0);
  world.End(kWorker1, 137).Settle();
  EXPECT_FALSE(IsAwaited(world.job, world.job.status, old));
  world.End(kWorker0, 0).Settle();
  EXPECT_FALSE(IsAwaited(world.job, world.job.status, world.Of(kWorker1))) << "the job is over";
}

}  // namespace
}  // namespace core
