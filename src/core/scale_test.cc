// Changing the number of replicas of a live job.
#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

using Attempts = std::map<ReplicaId, int32_t>;

World& Scale(World& world, Role role, int32_t count) {
  world.job.spec.replicas[role].replicas = count;
  return world.Settle();
}

TEST(Scale, AGangIsRestartedOnceInItsNewShape) {
  for (const int32_t count : {1, 3}) {
    World world(MakeJob({.worker = 2}));
    Scale(world.Settle(), Role::kWorker, count);
    EXPECT_EQ(std::ssize(world.Live()), count);
    const int32_t attempt = world.job.status.gang.attempt;
    EXPECT_GT(attempt, 0);
    for (const auto& [id, a] : world.Live()) EXPECT_EQ(a, attempt);
    EXPECT_EQ(world.job.status.restarts + world.job.status.disruptions, 0);
    EXPECT_FALSE(api::IsTerminal(world.job.status));
  }
}

TEST(Scale, OfAGangIsGraceful) {
  World world(MakeJob({.worker = 2}));
  world.Settle().job.spec.replicas[Role::kWorker].replicas = 3;
  EXPECT_EQ(ActionsOf<Stop>(world.Pass()),
            (std::vector{Stop{kWorker0, "worker-0@0", true}, Stop{kWorker1, "worker-1@0", true}}));
}

// Found by the simulator: an operator with an old view of pods started the new gang beside the old
// one, which it did not see.
TEST(Scale, TellsWhichReplicasOfTheOldShapeAreNotSeen) {
  World world(MakeJob({.worker = 3}));
  world.Settle().job.spec.replicas[Role::kWorker].replicas = 2;
  world.observed = Seen({Worker(0, Phase::kRunning)});
  EXPECT_EQ(world.Pass(/*perform=*/false).missed, (std::vector{kWorker1, Id(Role::kWorker, 2)}));
}

TEST(Scale, ElasticWorkersComeAndGoAlone) {
  World world(MakeJob({.worker = 2}));
  world.job.extensions.elastic = api::Elastic{1, 4};
  Scale(world.Settle(), Role::kWorker, 3);
  EXPECT_EQ(world.Live()[kWorker0], 0);
  EXPECT_EQ(world.Live().size(), 3u);
  Scale(world, Role::kWorker, 1);
  EXPECT_EQ(world.Live(), (Attempts{{kWorker0, 0}}));
  EXPECT_EQ(world.job.status.disruptions, 0);
}

TEST(Scale, OfWorkersBesideParameterServersRestartsTheCoordinatorOnly) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 2}));
  Scale(world.Settle(), Role::kWorker, 1);
  EXPECT_EQ(world.Live()[kWorker0], 0);
  EXPECT_EQ(world.Live()[kPs0], 0);
  EXPECT_GT(world.Live()[kChief0], 0);
  World without(MakeJob({.ps = 1, .worker = 2}));
  Scale(without.Settle(), Role::kWorker, 3);
  EXPECT_GT(without.Live()[kWorker0], 0);
  EXPECT_EQ(without.Live()[kWorker1], 0);
}

TEST(Scale, OfParameterServersRestartsEverybodyButTheEvaluator) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 1, .evaluator = 1}));
  Scale(world.Settle(), Role::kPs, 2);
  const int32_t attempt = world.job.status.gang.attempt;
  EXPECT_EQ(world.Live(), (Attempts{{kChief0, attempt},
                                    {kPs0, attempt},
                                    {kPs1, attempt},
                                    {kWorker0, attempt},
                                    {kEvaluator0, 0}}));
}

TEST(Scale, OfParameterServersStartsNobodyWhileAnOldOneLives) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 1}));
  world.Settle().job.spec.replicas[Role::kPs].replicas = 2;
  world.Pass(/*perform=*/false);
  world.Vanish(kChief0).Of(kPs0).deleting = true;
  EXPECT_TRUE(Started(world.Pass(false)).empty());
}

TEST(Scale, OfEvaluatorsTouchesNobodyElse) {
  World world(MakeJob({.worker = 2, .evaluator = 1}));
  Scale(world.Settle(), Role::kEvaluator, 0);
  EXPECT_EQ(world.Live(), (Attempts{{kWorker0, 0}, {kWorker1, 0}}));
  Scale(world, Role::kEvaluator, 1);
  EXPECT_EQ(world.Live()[kWorker0], 0);
  EXPECT_TRUE(world.Live().contains(kEvaluator0));
}

TEST(Scale, ToZeroMeansZero) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 2}));
  Scale(world.Settle(), Role::kWorker, 0);
  EXPECT_FALSE(world.Live().contains(kWorker0));
  EXPECT_EQ(world.Live().size(), 2u);
  EXPECT_TRUE(world.settles);
  EXPECT_FALSE(api::IsTerminal(world.job.status));
}

TEST(Scale, DownLeavesHolesAlone) {
  World world(MakeJob({.worker = 1}));
  world.job.extensions.elastic = api::Elastic{1, 9};
  world.observed = Seen({Worker(0, Phase::kRunning), Worker(4, Phase::kRunning)});
  world.Settle();
  EXPECT_EQ(world.Live(), (Attempts{{kWorker0, 0}}));
}

// The one that was scaled away may still be saving its work when it is wanted again.
TEST(Scale, DownAndUpAgainDoesNotMistakeTheOldOneForTheNew) {
  World world(MakeJob({.worker = 2}));
  world.job.extensions.elastic = api::Elastic{1, 4};
  world.Settle().job.spec.replicas[Role::kWorker].replicas = 1;
  world.Pass(/*perform=*/false);
  world.Of(kWorker1).deleting = true;
  world.job.spec.replicas[Role::kWorker].replicas = 2;
  world.Pass();
  world.End(kWorker1, 0).observed.replicas[1].ending->stopped = true;
  world.Settle();
  EXPECT_EQ(world.Live().size(), 2u);
  EXPECT_GT(world.Live()[kWorker1], 0);
  EXPECT_EQ(world.job.status.disruptions, 0);
}

TEST(Scale, DownAndUpAgainNeverReusesAnAttempt) {
  for (Role role : {Role::kWorker, Role::kEvaluator}) {
    World world(MakeJob({.chief = 1, .ps = 1, .worker = 2, .evaluator = 2}));
    const ReplicaId id{role, 1};
    world.Settle().After(1s).End(id, 137).Settle();
    const int32_t before = world.Live()[id];
    Scale(world, role, 1);
    Scale(world, role, 2);
    EXPECT_GT(world.Live()[id], before);
  }
}

// Found by the simulator: one of two chiefs was done when the workers beside the parameter servers
// were scaled.
TEST(Scale, OfWorkersNeverRunsACompletedCoordinatorAgain) {
  World world(MakeJob({.chief = 2, .ps = 1, .worker = 2}));
  world.Settle().After(1s).End(Id(Role::kChief, 1), 0).Settle();
  Scale(world, Role::kWorker, 4);
  EXPECT_TRUE(world.job.status.completed.contains(Id(Role::kChief, 1)));
  EXPECT_FALSE(world.Live().contains(Id(Role::kChief, 1)));
  EXPECT_GT(world.Live()[kChief0], 0);
}

TEST(Scale, WhileRestartingCountsTheRestartOnce) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min).End(kWorker1, 137);
  world.Pass(/*perform=*/false);
  Scale(world, Role::kWorker, 3);
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_EQ(world.Live().size(), 3u);
}

TEST(Scale, AwayTheOneInBackoffForgetsIt) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 2}));
  for (int i = 0; i < 3; ++i) world.Crash(kWorker1);
  Scale(world, Role::kWorker, 1);
  EXPECT_FALSE(world.job.status.units.contains(kWorker1));
  EXPECT_EQ(Reconcile(world.job, world.observed, {}, world.now).look_again, std::nullopt);
}

TEST(Scale, WhileSuspendedTakesEffectAtResume) {
  World world(MakeJob({.worker = 2}));
  world.Settle().job.spec.run_policy.suspend = true;
  Scale(world.Settle(), Role::kWorker, 4);
  EXPECT_TRUE(world.Live().empty());
  world.job.spec.run_policy.suspend = false;
  EXPECT_EQ(world.Settle().Live().size(), 4u);
}

}  // namespace
}  // namespace core
