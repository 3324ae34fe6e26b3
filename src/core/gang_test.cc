// Workers of one collective: they fail, and are restarted, together.
#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

using Attempts = std::map<ReplicaId, int32_t>;

Decision Judge(const api::Job& job, std::vector<ReplicaState> replicas, Policy policy = {},
               Time now = kStart + 1min) {
  return Reconcile(job, Seen(std::move(replicas)), policy, now);
}

TEST(Gang, IsRestartedWholeWhenOneIsKilled) {
  World world(MakeJob({.worker = 3}));
  world.Settle().After(1min).End(kWorker1, 137).Settle();
  EXPECT_EQ(world.Live(), (Attempts{{kWorker0, 1}, {kWorker1, 1}, {kWorker2, 1}}));
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_EQ(world.job.status.attempt, 1);
}

TEST(Gang, SurvivorsGetNoGrace) {
  const Decision d = Judge(MakeJob({.worker = 2}),
                           {Exited(Worker(0, Phase::kRunning), 137), Worker(1, Phase::kRunning)});
  EXPECT_EQ(ActionsOf<Stop>(d), (std::vector{Stop{kWorker1, "worker-1@0", false}}));
}

TEST(Gang, NobodyIsStartedWhileAMemberOfTheOldGenerationLives) {
  api::Job job = MakeJob({.worker = 3});
  job.status.gang.attempt = job.status.attempt = 1;
  EXPECT_TRUE(Started(Judge(job, {Deleting(Worker(2, Phase::kRunning, 0))})).empty());
  EXPECT_EQ(Started(Judge(job, {})).size(), 3u);
}

TEST(Gang, PeersThatFollowAreNotCounted) {
  World world(MakeJob({.worker = 3}));
  world.Settle().After(1min).End(kWorker1, 137).After(9s).End(kWorker0, 1).End(kWorker2, 1);
  world.Settle();
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  ASSERT_EQ(world.job.status.incidents.size(), 1u);
  EXPECT_EQ(world.job.status.incidents[0].replica, kWorker1);
  EXPECT_EQ(world.job.status.incidents[0].consequences, (std::vector{kWorker0, kWorker2}));
}

TEST(Gang, ThePolicyIsAskedForTheFirstCauseOnly) {
  const Decision d =
      Judge(MakeJob({.worker = 2}), {Exited(Worker(0, Phase::kRunning), 1, kStart + 3s),
                                     Exited(Worker(1, Phase::kRunning), 137, kStart + 8s)});
  EXPECT_TRUE(api::Has(d.status, "Failed"));
  EXPECT_EQ(d.status.verdict->exit_status, 1);
}

TEST(Gang, ARetryableCauseWinsWhereTheOrderIsNotKnown) {
  const std::vector<ReplicaState> within_a_second = {
      Exited(Worker(0, Phase::kRunning), 1, kStart + 3s),
      Exited(Worker(1, Phase::kRunning), 137, kStart + 3s + 900ms)};
  EXPECT_TRUE(api::Has(Judge(MakeJob({.worker = 2}), within_a_second).status, "Failed"));
  const Decision d = Judge(MakeJob({.worker = 2}), within_a_second, {.clock_resolution = 1s});
  EXPECT_EQ(d.status.restarts, 1);
  EXPECT_EQ(d.status.incidents[0].replica, kWorker1);
}

TEST(Gang, UnknownOrderDoesNotReachFurtherThanTheClockIsCoarse) {
  // 0 and 1.8 are in order, though neither is known to differ from 0.9.
  const Decision d = Judge(MakeJob({.worker = 3}),
                           {Exited(Worker(0, Phase::kRunning), 1, kStart),
                            Exited(Worker(1, Phase::kRunning), 137, kStart + 900ms),
                            Exited(Worker(2, Phase::kRunning), 139, kStart + 1800ms)},
                           {.clock_resolution = 1s});
  EXPECT_EQ(d.status.incidents.back().replica, kWorker1);
}

// Seen after a restart of the controller: the pod had its grace to die in, its peers had not.
TEST(Gang, ADisruptionExplainsPeersThatEndedBeforeIt) {
  const Decision d =
      Judge(MakeJob({.worker = 2}), {Exited(Worker(0, Phase::kRunning), 1, kStart),
                                     Disrupted(Worker(1, Phase::kRunning), kStart + 20s)});
  EXPECT_EQ(d.status.disruptions, 1);
  EXPECT_FALSE(api::IsTerminal(d.status));
}

TEST(Gang, ADisruptionWinsOverAFailureWhereTheOrderIsNotKnown) {
  const Decision d =
      Judge(MakeJob({.worker = 2}, RestartPolicy::kOnFailure),
            {Exited(Worker(0, Phase::kRunning), 1), Disrupted(Worker(1, Phase::kRunning))});
  EXPECT_EQ(d.status.restarts, 0);
  EXPECT_EQ(d.status.disruptions, 1);
}

// As in a drain: all are asked to go, one has gone, and only its pod tells that it was evicted.
TEST(Gang, ADisruptionIsToldInTheWordsOfThoseThatHaveEnded) {
  World world(MakeJob({.worker = 2}));
  world.Settle();
  const Decision d = Judge(world.job, {Deleting(Worker(0, Phase::kRunning)),
                                       Disrupted(Deleting(Worker(1, Phase::kRunning)))});
  EXPECT_EQ(d.status.disruptions, 1);
  ASSERT_EQ(d.status.incidents.size(), 1u);
  EXPECT_EQ(d.status.incidents[0].replica, kWorker1);
  EXPECT_EQ(d.status.incidents[0].what, "was taken away: preempted");
  EXPECT_EQ(d.status.incidents[0].consequences, (std::vector{kWorker0}));
}

const char kPeerLost[] = "UnavailableError: Collective ops is aborted by: Socket closed";

TEST(Gang, AnEndingThatBlamesAPeerWaitsForThePeers) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min).End(kWorker0, 1);
  world.observed.replicas[0] = Saying(world.observed.replicas[0], kPeerLost);
  const Decision waiting = world.Pass();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_EQ(waiting.look_again, world.now + 5s);
  world.After(2s).End(kWorker1, 137).Settle();
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_EQ(world.job.status.incidents.back().replica, kWorker1);
}

// A node tells the ends of its pods in any order: that of the one that was killed may come last.
TEST(Gang, AnEndingThatBlamesAPeerWaitsThoughItAllowsARestart) {
  World world(MakeJob({.worker = 2}));
  world.job.spec.replicas[Role::kWorker].restart_policy = api::RestartPolicy::kOnFailure;
  world.Settle().After(1min).End(kWorker1, 1);
  world.observed.replicas[1] = Saying(world.observed.replicas[1], kPeerLost);
  EXPECT_EQ(world.Pass().look_again, world.now + 5s);
  world.After(1s).End(kWorker0, 137).Settle();
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_EQ(world.job.status.incidents.back().replica, kWorker0);
}

TEST(Gang, OneThatWasKilledIsTheCauseWhateverItSaidBefore) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min).End(kWorker0, 1).End(kWorker1, 137);
  for (ReplicaState& r : world.observed.replicas) r = Saying(r, kPeerLost);
  world.Settle();
  EXPECT_EQ(world.job.status.restarts, 1);
  EXPECT_EQ(world.job.status.incidents.back().replica, kWorker1);
}

TEST(Gang, AnEndingThatBlamesAPeerIsTheCauseWhenNoOtherComes) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min).End(kWorker0, 1);
  world.observed.replicas[0] = Saying(world.observed.replicas[0], kPeerLost);
  world.Settle().After(5s).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Failed"));
}

// A node is known to be silent after 40 s or more; the peers of its worker exit after 10 s.
const Policy kOnCluster{.end_leftovers = false, .clock_resolution = 1s, .notices_silence = 90s};

TEST(Gang, AMemberWhoseNodeIsSilentIsADisruptionThatExplainsItsPeersEndings) {
  World world(MakeJob({.worker = 3}));
  world.policy = kOnCluster;
  world.Settle().After(1min).End(kWorker0, 1, kPeerLost).End(kWorker2, 1, kPeerLost);
  EXPECT_EQ(world.Pass().look_again, world.now + 90s);
  world.After(40s).Settle();
  EXPECT_EQ(world.job.status.disruptions, 0);
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  ReplicaState& silent = world.Of(kWorker1);
  silent = Silent(silent);
  const Decision d = world.Pass(/*perform=*/false);
  EXPECT_EQ(ActionsOf<Stop>(d), (std::vector{Stop{kWorker1, "worker-1@0", false}}));
  EXPECT_EQ(world.job.status.disruptions, 1);
  EXPECT_EQ(world.job.status.restarts, 0);
  const api::Incident& incident = world.job.status.incidents.back();
  EXPECT_EQ(incident.replica, kWorker1);
  EXPECT_EQ(incident.what, "was taken away: node n1 does not answer");
  EXPECT_EQ(incident.consequences, (std::vector{kWorker0, kWorker2}));
  // Nobody starts while Kubernetes has not let go of the pod.
  world.Vanish(kWorker0).Vanish(kWorker2).Of(kWorker1).deleting = true;
  world.After(10min);
  EXPECT_EQ(Started(world.Pass(false)), std::vector<ReplicaId>());
  world.Vanish(kWorker1).Settle();
  EXPECT_EQ(world.Live(), (Attempts{{kWorker0, 1}, {kWorker1, 1}, {kWorker2, 1}}));
  EXPECT_EQ(world.job.status.disruptions, 1);
}

TEST(Gang, AMemberWhoseNodeIsSilentRunsOnWhileItsPeersDo) {
  World world(MakeJob({.worker = 2}));
  world.policy = kOnCluster;
  world.Settle().After(1min);
  world.Of(kWorker1).silent = "node n1 does not answer";
  EXPECT_TRUE(world.Settle().Pass().actions.empty());
  EXPECT_EQ(world.job.status.disruptions, 0);
}

TEST(Gang, AnErrorOfItsOwnFailsTheJobThoughTheNodeOfAnotherIsSilent) {
  const Decision d =
      Judge(MakeJob({.worker = 3}),
            {Saying(Exited(Worker(0, Phase::kRunning), 1, kStart + 1s), kPeerLost),
             Saying(Exited(Worker(1, Phase::kRunning), 1, kStart + 3s), "ValueError: bad shape"),
             Silent(Worker(2, Phase::kRunning))},
            kOnCluster);
  EXPECT_EQ(d.status.verdict->cause, "worker/1 exited with status 1: ValueError: bad shape");
}

TEST(Gang, AnEndingThatBlamesAPeerIsTheCauseWhenEveryNodeAnswers) {
  World world(MakeJob({.worker = 2}));
  world.policy = kOnCluster;
  world.Settle().After(1min).End(kWorker0, 1, kPeerLost).Settle().After(90s).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Failed"));
}

TEST(Gang, TheOneWithAnErrorOfItsOwnIsTheCauseThoughItEndedLater) {
  const Decision d =
      Judge(MakeJob({.worker = 2}),
            {Saying(Exited(Worker(0, Phase::kRunning), 1, kStart + 1s), kPeerLost),
             Saying(Exited(Worker(1, Phase::kRunning), 1, kStart + 3s), "ValueError: bad shape")});
  EXPECT_EQ(d.status.verdict->cause, "worker/1 exited with status 1: ValueError: bad shape");
}

TEST(Gang, OneThatVanishedExplainsItsPeersEndings) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min).Vanish(kWorker1).End(kWorker0, 1).After(30s).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_EQ(world.job.status.disruptions, 1);
  EXPECT_EQ(world.job.status.restarts, 0);
}

TEST(Gang, OneThatSomebodyDeletesMaySaveItsWork) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min).Of(kWorker1).deleting = true;
  EXPECT_TRUE(world.Pass().actions.empty());
  world.After(10s).End(kWorker1, 42).Settle();
  EXPECT_EQ(world.job.status.disruptions, 1);
}

TEST(Gang, OneThatSomebodyDeletesExplainsItsPeersEndings) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min).Of(kWorker1).deleting = true;
  world.Pass();
  world.After(9s).End(kWorker0, 1).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_EQ(world.job.status.disruptions, 1);
  EXPECT_EQ(world.Live(), (Attempts{{kWorker0, 1}, {kWorker1, 1}}));
}

TEST(Gang, TheEvaluatorIsRestartedAlone) {
  World world(MakeJob({.worker = 2, .evaluator = 1}));
  world.Settle().After(1min).End(kEvaluator0, 137).Settle();
  EXPECT_EQ(world.Live(), (Attempts{{kWorker0, 0}, {kWorker1, 0}, {kEvaluator0, 1}}));
  EXPECT_EQ(world.job.status.restarts, 1);
}

TEST(Gang, LeavesTheEvaluatorAloneWhenItBreaks) {
  World world(MakeJob({.worker = 2, .evaluator = 1}));
  world.Settle().After(1min).End(kWorker0, 137).Settle();
  EXPECT_EQ(world.Live(), (Attempts{{kWorker0, 1}, {kWorker1, 1}, {kEvaluator0, 0}}));
}

TEST(Gang, AMemberThatIsDoneUnderAlwaysDoesNotBreakIt) {
  World world(MakeJob({.worker = 2}, RestartPolicy::kAlways));
  world.Settle().After(1min).End(kWorker1, 0).Settle();
  EXPECT_EQ(world.Live(), (Attempts{{kWorker0, 0}}));
  EXPECT_TRUE(api::Has(world.End(kWorker0, 0).Settle().job.status, "Succeeded"));
}

TEST(Gang, MembersThatWereDoneRunAgainWithTheOthers) {
  World world(MakeJob({.worker = 3}));
  world.Settle().After(1min).End(kWorker2, 0).Settle().End(kWorker1, 137).Settle();
  EXPECT_EQ(world.Live(), (Attempts{{kWorker0, 1}, {kWorker1, 1}, {kWorker2, 1}}));
}

TEST(Disruption, NeverEndsAJob) {
  for (RestartPolicy policy : {RestartPolicy::kNever, RestartPolicy::kExitCode}) {
    World world(MakeJob({.worker = 2}, policy));
    world.job.spec.run_policy.backoff_limit = 0;
    for (int i = 0; i < 30; ++i) world.Settle().After(1s).Disrupt(kWorker1).Settle().After(5min);
    world.Settle();
    EXPECT_FALSE(api::IsTerminal(world.job.status));
    EXPECT_EQ(world.job.status.disruptions, 30);
    EXPECT_EQ(world.job.status.restarts, 0);
    EXPECT_EQ(world.Live().size(), 2u);
  }
}

TEST(Disruption, TensorFlowsPreemptionExitIsOne) {
  World world(MakeJob({.worker = 2}, RestartPolicy::kNever));
  world.Settle().After(1min).End(kWorker0, 42).End(kWorker1, 42).Settle();
  EXPECT_EQ(world.job.status.disruptions, 1);
  EXPECT_EQ(world.Live().size(), 2u);
}

TEST(Disruption, AReplicaThatVanishedIsReplaced) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 2}));
  world.Settle().After(1min).Vanish(kWorker1).Settle();
  EXPECT_EQ(world.Live()[kWorker1], 1);
  EXPECT_EQ(world.Live()[kWorker0], 0);
  EXPECT_EQ(world.job.status.disruptions, 1);
  EXPECT_EQ(world.Settle().job.status.disruptions, 1);
}

}  // namespace
}  // namespace core
