// The laws of core/reconcile.h, on situations that are prone to break them.
#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

struct Situation {
  const char* name;
  api::Job job;
  std::vector<ReplicaState> replicas;
  std::optional<DataView> data = {};

  Observed Observe(std::vector<ReplicaState> in_order) const {
    Observed out = Seen(std::move(in_order));
    out.data = data;
    return out;
  }
};

std::vector<Situation> Situations() {
  api::Job suspended = MakeJob({.worker = 2});
  suspended.spec.run_policy.suspend = true;
  api::Job done = MakeJob({.worker = 2});
  done.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kAll;
  api::Job limited = MakeJob({.worker = 3});
  limited.spec.run_policy.backoff_limit = 0;
  api::Job deciding = MakeJob({.chief = 1, .ps = 1, .worker = 1, .evaluator = 1});
  deciding.extensions.wait_for_evaluator = true;
  api::Job elastic = MakeJob({.worker = 3});
  elastic.extensions.elastic = api::Elastic{1, 3};
  const DataView left{.registered = true,
                      .todo = 2,
                      .doing = 1,
                      .misled = {{kWorker0, 0}},
                      .unheard = {{kWorker1, 0}}};
  DataView last = left;
  last.todo = 0;
  return {
      {"fresh", MakeJob({.worker = 3}), {}},
      {"half of a gang started", MakeJob({.worker = 3}), {Worker(1, Phase::kRunning)}},
      {"gang broken by a kill",
       MakeJob({.worker = 3}),
       {Exited(Worker(0, Phase::kFailed), 1, kStart + 9s),
        Exited(Worker(1, Phase::kFailed), 137, kStart + 1s), Worker(2, Phase::kRunning)}},
      {"two endings at one time",
       MakeJob({.worker = 3}),
       {Exited(Worker(0, Phase::kFailed), 1), Exited(Worker(1, Phase::kFailed), 137),
        Disrupted(Worker(2, Phase::kFailed))}},
      {"permanent failure",
       MakeJob({.worker = 2}),
       {Exited(Worker(0, Phase::kFailed), 1), Worker(1, Phase::kRunning)}},
      {"limit spent",
       limited,
       {Exited(Worker(2, Phase::kFailed), 137), Worker(1, Phase::kRunning)}},
      {"parameter server lost",
       MakeJob({.chief = 1, .ps = 2, .worker = 2}),
       {Chief(Phase::kRunning), Exited(Ps(0, Phase::kFailed), 137),
        Exited(Ps(1, Phase::kFailed), 137), Worker(0, Phase::kRunning),
        Worker(1, Phase::kRunning)}},
      {"old and new attempts",
       MakeJob({.worker = 2}),
       {Worker(0, Phase::kRunning, 3), Worker(1, Phase::kFailed, 7)}},
      {"done", done, {Worker(0, Phase::kSucceeded), Worker(1, Phase::kRunning)}},
      {"suspended", suspended, {Worker(0, Phase::kRunning), Worker(1, Phase::kSucceeded)}},
      {"chief done, evaluator awaited",
       deciding,
       {Chief(Phase::kSucceeded), Ps(0, Phase::kFailed), Evaluator(Phase::kRunning)}},
      {"out of range",
       MakeJob({.worker = 1}),
       {Worker(0, Phase::kRunning), Worker(7, Phase::kRunning)}},
      {"misled, unheard and killed with data left",
       elastic,
       {Worker(0, Phase::kSucceeded), Worker(1, Phase::kSucceeded),
        Exited(Worker(2, Phase::kFailed), 137)},
       left},
      {"misled while another has the last shard",
       elastic,
       {Worker(0, Phase::kSucceeded), Worker(1, Phase::kSucceeded), Worker(2, Phase::kRunning)},
       last},
  };
}

TEST(Laws, DoingWhatItSaysSettles) {
  for (const Situation& s : Situations()) {
    World world(s.job);
    world.observed = s.Observe(s.replicas);
    EXPECT_TRUE(world.After(1min).Settle().settles) << s.name;
    const Decision again = Reconcile(world.job, world.observed, world.policy, world.now);
    EXPECT_EQ(again.status, world.job.status) << s.name;
    EXPECT_TRUE(again.actions.empty() && again.events.empty()) << s.name;
  }
}

TEST(Laws, NothingIsAskedTwiceOfOneThatIsOnItsWayOut) {
  World world(MakeJob({.worker = 2}));
  world.Settle();
  world.job.spec.run_policy.suspend = true;
  EXPECT_EQ(StoppedIds(world.Pass(/*perform=*/false)), (std::vector{kWorker0, kWorker1}));
  world.Of(kWorker0).deleting = true;
  EXPECT_EQ(StoppedIds(world.Pass(false)), (std::vector{kWorker1}));
}

TEST(Laws, TheOrderOfWhatWasSeenDoesNotMatter) {
  for (const Situation& s : Situations()) {
    std::vector<ReplicaState> replicas = s.replicas;
    std::ranges::sort(replicas, {}, &ReplicaState::incarnation);
    const Decision first = Reconcile(s.job, s.Observe(replicas), {}, kStart + 1min);
    while (std::ranges::next_permutation(replicas, {}, &ReplicaState::incarnation).found) {
      const Decision other = Reconcile(s.job, s.Observe(replicas), {}, kStart + 1min);
      EXPECT_EQ(other.status, first.status) << s.name;
      EXPECT_EQ(other.actions, first.actions) << s.name;
      EXPECT_EQ(other.events, first.events) << s.name;
      EXPECT_EQ(other.look_again, first.look_again) << s.name;
    }
  }
}

TEST(Laws, ACrashBetweenIntentAndDeedNeitherLosesNorDoublesARestart) {
  for (const bool performs : {true, false}) {
    World world(MakeJob({.worker = 2}));
    world.Settle().After(1min).End(kWorker1, 137);
    world.Pass(performs);
    EXPECT_EQ(world.job.status.restarts, 1);
    for (int crash = 0; crash < 3; ++crash) world.Pass(false);
    world.Settle();
    EXPECT_EQ(world.job.status.restarts, 1);
    EXPECT_EQ(world.Live(), (std::map<ReplicaId, int32_t>{{kWorker0, 1}, {kWorker1, 1}}));
  }
}

TEST(Laws, TheCounterIsInTheStatusBeforeTheStart) {
  World world(MakeJob({.worker = 1}));
  world.Settle().After(1min).End(kWorker0, 137);
  const Decision decision = world.Pass();
  EXPECT_EQ(decision.status.restarts, 1);
  EXPECT_EQ(decision.status.gang.attempt, 1);
  EXPECT_TRUE(Started(decision).empty());  // the old incarnation is removed first
  EXPECT_EQ(ActionsOf<Start>(world.Pass()), (std::vector{Start{kWorker0, 1}}));
}

TEST(Laws, AStopNamesTheIncarnation) {
  api::Job job = MakeJob({.worker = 2});
  job.status.gang.attempt = job.status.attempt = 4;
  const Decision decision = Reconcile(
      job, Seen({Worker(0, Phase::kRunning, 3), Worker(1, Phase::kRunning, 4)}), {}, kStart);
  EXPECT_EQ(ActionsOf<Stop>(decision), (std::vector{Stop{kWorker0, "worker-0@3", false}}));
}

TEST(Laws, TerminalIsFinal) {
  for (const int32_t code : {0, 1}) {
    World world(MakeJob({.worker = 2}));
    world.Settle().After(1min).End(kWorker0, code).Settle().After(1min).Settle();
    const api::JobStatus final = world.job.status;
    EXPECT_TRUE(api::IsTerminal(final));
    world.observed = Seen({Worker(0, Phase::kRunning, 9), Worker(1, Phase::kFailed)});
    world.job.spec.replicas[Role::kWorker].replicas = 5;
    world.job.spec.run_policy.suspend = true;
    world.After(1h).Settle();
    EXPECT_EQ(world.job.status, final);
    EXPECT_TRUE(world.Live().empty());
  }
}

TEST(Laws, SucceededAndFailedExcludeEachOther) {
  const api::Job job = MakeJob({.chief = 1, .worker = 1}, RestartPolicy::kNever);
  const Decision decision = Reconcile(
      job, Seen({Exited(Chief(Phase::kRunning), 0), Exited(Worker(0, Phase::kRunning), 1)}), {},
      kStart + 1min);
  EXPECT_TRUE(api::Has(decision.status, "Succeeded"));
  EXPECT_EQ(api::FindCondition(decision.status, "Failed"), nullptr);
}

TEST(Laws, ACompletedReplicaIsNotRunAgainWhenItsPodIsCollected) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 2}));
  world.Settle().After(1min).End(kWorker1, 0).Settle().Vanish(kWorker1).Settle();
  EXPECT_FALSE(world.Live().contains(kWorker1));
  EXPECT_EQ(world.job.status.disruptions, 0);
}

TEST(Laws, ARepeatedViewChangesNothing) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1min).End(kWorker1, 137);
  world.Pass(false);
  const api::JobStatus once = world.job.status;
  world.Pass(false);
  EXPECT_EQ(world.job.status, once);
}

TEST(Laws, AMetricThatIsNotANumberIsNotPublishedForEver) {
  World world(MakeJob({.worker = 1}));
  world.observed.progress = {.percent = 3.0, .metrics = {{"loss", NAN}, {"accuracy", 0.5}}};
  EXPECT_TRUE(world.Settle().settles);
  EXPECT_EQ(world.job.status.progress.metrics, (std::map<std::string, double>{{"accuracy", 0.5}}));
}

TEST(Laws, ProgressIsNotForgottenWhenNobodyTellsOfIt) {
  World world(MakeJob({.worker = 1}));
  world.observed.progress = {.percent = 40.0};
  world.Settle();
  world.observed.progress = {};
  world.Settle();
  EXPECT_EQ(world.job.status.progress.percent, 40.0);
}

TEST(Laws, AStatusOfGarbageIsEndured) {
  for (const char* text :
       {R"({"conditions":[{"type":"Succeeded","status":"True"}]})",
        R"({"conditions":[{"type":"Failed","status":"True"}],"startTime":"never"})",
        R"({"units":{"worker-0":{"attempt":-7,"notBefore":"9999-12-31T23:59:59Z"},"ps-9":{}}})",
        R"({"attempt":99999999999,"restarts":-3,"gang":{"attempt":2147483647}})",
        R"({"seen":{"PS":"0-5","Worker":"0-3"},"completed":{"Worker":"1-0,7"}})",
        R"({"shape":{"Worker":-4},"incidents":[{}]})"}) {
    World world(MakeJob({.worker = 2}));
    world.job.spec.run_policy.ttl_seconds_after_finished = 100;
    world.job.status = api::DecodeStatus(*base::ParseJson(text));
    EXPECT_TRUE(world.Settle().settles) << text;
    if (!api::IsTerminal(world.job.status)) {
      EXPECT_EQ(world.Live().size(), 2u) << text;
      world.After(1min).End(kWorker0, 137).Settle();
      EXPECT_EQ(world.Live().size(), 2u) << text;
    } else {
      EXPECT_TRUE(world.job.status.completion_time) << text;
    }
  }
}

}  // namespace
}  // namespace core
