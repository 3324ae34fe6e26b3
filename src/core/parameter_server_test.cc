// Jobs with parameter servers: replicas are restarted alone, but for a lost PS.
#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

using Attempts = std::map<ReplicaId, int32_t>;

api::Job PsJob() { return MakeJob({.chief = 1, .ps = 2, .worker = 2}); }

TEST(ParameterServers, AWorkerIsRestartedAlone) {
  World world(PsJob());
  world.Settle().After(1min).End(kWorker1, 137).Settle();
  EXPECT_EQ(world.Live(),
            (Attempts{{kChief0, 0}, {kPs0, 0}, {kPs1, 0}, {kWorker0, 0}, {kWorker1, 1}}));
}

TEST(ParameterServers, AChiefIsRestartedAlone) {
  World world(PsJob());
  world.Settle().After(1min).End(kChief0, 137).Settle();
  EXPECT_EQ(world.Live(),
            (Attempts{{kChief0, 1}, {kPs0, 0}, {kPs1, 0}, {kWorker0, 0}, {kWorker1, 0}}));
}

TEST(ParameterServers, ALostOneRestartsItAndTheChief) {
  World world(PsJob());
  world.Settle().After(1min).End(kPs1, 137).Settle();
  EXPECT_EQ(world.Live(),
            (Attempts{{kChief0, 1}, {kPs0, 0}, {kPs1, 1}, {kWorker0, 0}, {kWorker1, 0}}));
  EXPECT_EQ(world.job.status.restarts, 1);
}

TEST(ParameterServers, ALostOneRestartsItAndWorker0WithoutAChief) {
  World world(MakeJob({.ps = 1, .worker = 2}));
  world.Settle().After(1min).End(kPs0, 137).Settle();
  EXPECT_EQ(world.Live(), (Attempts{{kPs0, 1}, {kWorker0, 1}, {kWorker1, 0}}));
}

TEST(ParameterServers, ALostOneExplainsTheChiefsError) {
  World world(PsJob());
  world.Settle().After(1min).End(kChief0, 1).End(kPs0, 137).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_EQ(world.job.status.incidents.back().replica, kPs0);
  EXPECT_EQ(world.job.status.incidents.back().consequences, (std::vector{kChief0}));
}

TEST(ParameterServers, OneThatSomebodyDeletesExplainsTheChiefsError) {
  World world(PsJob());
  world.Settle().After(1min).Of(kPs0).deleting = true;
  world.Pass();
  world.After(8s).End(kChief0, 1).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_EQ(world.job.status.disruptions, 1);
  EXPECT_EQ(world.job.status.restarts, 0);
}

// Found by the simulator, seed 109412.
TEST(ParameterServers, TheChiefIsNotStartedWhileTheOldOneLives) {
  World world(PsJob());
  world.Settle().After(1min).Of(kPs0).deleting = true;
  world.End(kChief0, 1);
  world.Pass(/*perform=*/false);
  world.Vanish(kChief0);
  EXPECT_EQ(Started(world.Pass(false)), std::vector<ReplicaId>());
  world.Vanish(kPs0);
  EXPECT_EQ(Started(world.Pass(false)), (std::vector{kChief0, kPs0}));
}

TEST(ParameterServers, AWorkerThatSomebodyDeletesKeepsItsGraceWhenAnotherFails) {
  World world(PsJob());
  world.Settle().After(1min).Of(kWorker0).deleting = true;
  world.End(kWorker1, 137).Settle();
  EXPECT_EQ(world.Live()[kWorker0], 0);
  EXPECT_EQ(world.job.status.disruptions, 0);
}

TEST(ParameterServers, AChiefsOwnErrorFailsTheJob) {
  World world(PsJob());
  world.Settle().After(1min).End(kChief0, 1).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Failed"));
}

const char kPeerLost[] =
    "tensorflow.python.framework.errors_impl.UnavailableError: failed to connect to all addresses";

// The workers' connections to a parameter server that is back are taken up again within a second,
// and the chief may ask them before. Seen with TensorFlow 2.15.
TEST(ParameterServers, AChiefThatFailsOverOneThatIsJustBackStartsAgain) {
  World world(PsJob());
  world.Settle().After(1min).End(kPs0, 137).Settle().After(5s).End(kChief0, 1, kPeerLost);
  world.Settle().After(5s).Settle().After(5s).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_EQ(world.job.status.restarts, 2);
  EXPECT_EQ(world.Live(),
            (Attempts{{kChief0, 2}, {kPs0, 1}, {kPs1, 0}, {kWorker0, 0}, {kWorker1, 0}}));
  // Its own restart is no excuse for the next time.
  world.After(2min).End(kChief0, 1, kPeerLost);
  world.Settle().After(5s).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Failed"));
}

const Policy kOnCluster{.end_leftovers = false, .clock_resolution = 1s, .notices_silence = 90s};

TEST(ParameterServers, OneWhoseNodeIsSilentExplainsTheChiefsError) {
  for (const RestartPolicy policy : {RestartPolicy::kExitCode, RestartPolicy::kOnFailure}) {
    World world(MakeJob({.chief = 1, .ps = 2, .worker = 2}, policy));
    world.policy = kOnCluster;
    world.Settle().After(1min).End(kChief0, 1, kPeerLost);
    EXPECT_EQ(world.Pass().look_again, world.now + 90s);
    world.After(40s).Of(kPs0).silent = "node n1 does not answer";
    world.Pass(/*perform=*/false);
    EXPECT_EQ(world.job.status.disruptions, 1);
    EXPECT_EQ(world.job.status.restarts, 0);
    EXPECT_EQ(world.job.status.incidents.back().replica, kPs0);
    EXPECT_EQ(world.job.status.incidents.back().consequences, (std::vector{kChief0}));
    world.Vanish(kChief0).Of(kPs0).deleting = true;
    EXPECT_EQ(Started(world.After(10min).Pass(false)), std::vector<ReplicaId>());
    world.Vanish(kPs0).Settle();
    EXPECT_EQ(world.Live(),
              (Attempts{{kChief0, 1}, {kPs0, 1}, {kPs1, 0}, {kWorker0, 1}, {kWorker1, 1}}));
    EXPECT_EQ(world.job.status.disruptions, 1);
  }
}

// No replica exits, because TensorFlow hears nothing from the node either. A worker that kept its
// connection would hang.
TEST(ParameterServers, OneWhoseNodeStayedSilentTakesTheWorkersAlong) {
  World world(PsJob());
  world.Settle().After(1min).Of(kPs0).silent = "node n1 does not answer";
  world.Settle();
  EXPECT_EQ(world.job.status.disruptions, 0);
  ReplicaState& ps = world.After(5min).Of(kPs0);
  ps = Disrupted(std::move(ps), world.now);
  world.Settle();
  EXPECT_EQ(world.Live(),
            (Attempts{{kChief0, 1}, {kPs0, 1}, {kPs1, 0}, {kWorker0, 1}, {kWorker1, 1}}));
  EXPECT_EQ(world.job.status.disruptions, 1);
  EXPECT_EQ(world.job.status.restarts, 0);
}

TEST(ParameterServers, AWorkerWhoseNodeStayedSilentTakesTheChiefAlong) {
  World world(PsJob());
  world.Settle().After(1min).Of(kWorker1).silent = "node n1 does not answer";
  ReplicaState& worker = world.Settle().After(5min).Of(kWorker1);
  worker = Disrupted(std::move(worker), world.now);
  world.Settle();
  EXPECT_EQ(world.Live(),
            (Attempts{{kChief0, 1}, {kPs0, 0}, {kPs1, 0}, {kWorker0, 0}, {kWorker1, 1}}));
  EXPECT_EQ(world.job.status.disruptions, 1);
}

TEST(ParameterServers, AWorkerWhoseNodeIsSilentExplainsTheChiefsError) {
  World world(PsJob());
  world.policy = kOnCluster;
  world.Settle().After(1min).Of(kWorker1).silent = "node n1 does not answer";
  world.End(kChief0, 1, kPeerLost).Pass(/*perform=*/false);
  EXPECT_EQ(world.job.status.disruptions, 1);
  EXPECT_EQ(world.job.status.restarts, 0);
  world.Vanish(kChief0).Of(kWorker1).deleting = true;
  EXPECT_EQ(Started(world.After(10min).Pass(false)), std::vector<ReplicaId>());
  world.Vanish(kWorker1).Settle();
  EXPECT_EQ(world.Live(),
            (Attempts{{kChief0, 1}, {kPs0, 0}, {kPs1, 0}, {kWorker0, 0}, {kWorker1, 1}}));
}

TEST(ParameterServers, AChiefThatBlamesAPeerFailsTheJobWhenEveryNodeAnswers) {
  World world(PsJob());
  world.policy = kOnCluster;
  world.Settle().After(1min).End(kChief0, 1, kPeerLost).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_TRUE(api::Has(world.After(90s).Settle().job.status, "Failed"));
}

TEST(ParameterServers, AChiefThatHasAnErrorOfItsOwnFailsTheJobThoughOneIsJustBack) {
  World world(PsJob());
  world.Settle().After(1min).End(kPs0, 137).Settle().After(5s).End(kChief0, 1,
                                                                   "ValueError: bad shape");
  world.Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Failed"));
}

TEST(ParameterServers, TwoLostAtOnceAreTwoFailuresAndOneChief) {
  World world(PsJob());
  world.Settle().After(1min).End(kPs0, 137).End(kPs1, 137).Settle();
  EXPECT_EQ(world.job.status.restarts, 2);
  EXPECT_EQ(world.Live().size(), 5u);
  EXPECT_EQ(world.Live()[kChief0], 2);
}

TEST(ParameterServers, AChiefThatIsDoneIsNotRunAgainForALostOne) {
  api::Job job = MakeJob({.chief = 2, .ps = 1, .worker = 1});
  World world(job);
  world.Settle().After(1min).End(kChief0, 0).Settle().End(kPs0, 137).Settle();
  EXPECT_FALSE(world.Live().contains(kChief0));
  EXPECT_EQ(world.Live()[Id(Role::kChief, 1)], 1);
  EXPECT_EQ(world.Live()[kPs0], 1);
}

TEST(ParameterServers, OnceTrainingIsDoneTheirEndChangesNothing) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 1, .evaluator = 1}, RestartPolicy::kNever));
  world.job.extensions.wait_for_evaluator = true;
  world.Settle().After(1min).End(kChief0, 0).Settle().End(kPs0, 1).Vanish(kWorker0).Settle();
  EXPECT_EQ(world.Live(), (Attempts{{kEvaluator0, 0}}));
  EXPECT_EQ(world.job.status.restarts + world.job.status.disruptions, 0);
  EXPECT_TRUE(api::Has(world.End(kEvaluator0, 0).Settle().job.status, "Succeeded"));
}

TEST(ParameterServers, TheEvaluatorIsRestartedAlone) {
  World world(MakeJob({.chief = 1, .ps = 1, .evaluator = 1}));
  world.Settle().After(1min).End(kEvaluator0, 137).Settle();
  EXPECT_EQ(world.Live(), (Attempts{{kChief0, 0}, {kPs0, 0}, {kEvaluator0, 1}}));
}

TEST(ParameterServers, EachReplicaHasItsOwnBackoff) {
  World world(PsJob());
  for (int i = 0; i < 3; ++i) world.Crash(kWorker1);
  world.End(kWorker0, 137).Settle();
  EXPECT_TRUE(world.Live().contains(kWorker0));
  EXPECT_FALSE(world.Live().contains(kWorker1));
  EXPECT_EQ(Reconcile(world.job, world.observed, {}, world.now).look_again, world.now + 2s);
}

TEST(DynamicWorkers, MayFailWithoutFailingTheJob) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 2}));
  world.job.spec.enable_dynamic_worker = true;
  world.Settle().After(1min).End(kWorker1, 1).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_FALSE(world.Live().contains(kWorker1));
  EXPECT_EQ(world.job.status.replica_statuses[Role::kWorker].failed, 1);
}

TEST(DynamicWorkers, FailTheJobWhenItWaitsForTheirSuccess) {
  World world(MakeJob({.worker = 2}));
  world.job.spec.enable_dynamic_worker = true;
  world.Settle().After(1min).End(kWorker0, 1).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Failed"));
}

}  // namespace
}  // namespace core
