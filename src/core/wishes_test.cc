#include "core/wishes.h"

#include <gtest/gtest.h>

namespace core {
namespace {

using namespace std::chrono_literals;

const base::Time kNow{1'000'000s};

api::Job FailedJob() {
  api::Job job;
  job.metadata.name = "mnist";
  job.spec.replicas[api::Role::kWorker] = {.replicas = 2};
  job.status = Stopped(job, "ann", kNow - 1h);
  return job;
}

TEST(Wishes, NoneIsNone) {
  EXPECT_FALSE(Heed(FailedJob(), kNow));
  EXPECT_FALSE(Heed(api::Job(), kNow));
}

TEST(Wishes, AStopEndsAJobOnce) {
  api::Job job;
  job.extensions.stopped_by = "ann";
  const auto heeded = Heed(job, kNow);
  ASSERT_TRUE(heeded);
  EXPECT_TRUE(WasStopped(heeded->status));
  ASSERT_TRUE(heeded->status.verdict);
  EXPECT_EQ(heeded->status.verdict->cause, "stopped by ann");
  ASSERT_EQ(heeded->events.size(), 1);
  EXPECT_EQ(heeded->events[0].reason, "TFJobStopped");
  job.status = heeded->status;
  EXPECT_FALSE(Heed(job, kNow + 1s));
}

TEST(Wishes, AnotherLifeIsHeededOnce) {
  api::Job job = FailedJob();
  job.extensions.life = 1;
  const auto heeded = Heed(job, kNow);
  ASSERT_TRUE(heeded);
  EXPECT_FALSE(api::IsTerminal(heeded->status));
  EXPECT_EQ(heeded->status.life, 1);
  EXPECT_GT(heeded->status.gang.attempt, job.status.gang.attempt);
  job.status = heeded->status;
  EXPECT_FALSE(Heed(job, kNow + 1s));
  // It fails again: that life is over, and the old wish brings no new one.
  job.status = Stopped(job, "bob", kNow + 2s);
  EXPECT_FALSE(Heed(job, kNow + 3s));
}

TEST(Wishes, AJobThatBacksOffStartsAgainLaterAndCountsNothing) {
  api::Job job;
  job.metadata.name = "mnist";
  job.spec.replicas[api::Role::kWorker] = {.replicas = 2};
  job.spec.replicas[api::Role::kEvaluator] = {.replicas = 1};
  Observed observed;
  const auto add = [&](api::ReplicaId id, Phase phase) {
    observed.replicas.push_back({.id = id, .incarnation = api::ToString(id), .phase = phase});
  };
  add({api::Role::kWorker, 0}, Phase::kRunning);
  add({api::Role::kWorker, 1}, Phase::kPending);
  add({api::Role::kEvaluator, 0}, Phase::kRunning);
  job.status = Reconcile(job, observed, {}, kNow).status;
  ASSERT_TRUE(api::Has(job.status, "Running"));
  job.status = BackedOff(job, "others wait", kNow + 10s, kNow);
  EXPECT_FALSE(api::Has(job.status, "Running"));
  Decision decision = Reconcile(job, observed, {}, kNow);
  EXPECT_EQ(decision.actions,
            (std::vector<Action>{Stop{{api::Role::kWorker, 0}, "worker-0", false},
                                 Stop{{api::Role::kWorker, 1}, "worker-1", false}}));
  EXPECT_EQ(decision.status.restarts, 0);
  EXPECT_EQ(decision.status.disruptions, 0);
  job.status = decision.status;
  std::erase_if(observed.replicas, [](const auto& r) { return r.id.role == api::Role::kWorker; });
  decision = Reconcile(job, observed, {}, kNow + 9s);
  EXPECT_TRUE(decision.actions.empty());
  EXPECT_EQ(decision.look_again, kNow + 10s);
  decision = Reconcile(job, observed, {}, kNow + 10s);
  EXPECT_EQ(decision.actions, (std::vector<Action>{Start{{api::Role::kWorker, 0}, 1},
                                                   Start{{api::Role::kWorker, 1}, 1}}));
}

TEST(Wishes, AJobThatRunsOrHasSucceededIsLeftAlone) {
  api::Job job;
  job.extensions.life = 3;
  auto heeded = Heed(job, kNow);
  ASSERT_TRUE(heeded);
  EXPECT_EQ(heeded->status.life, 3);
  EXPECT_TRUE(heeded->events.empty());
  job.status.conditions = {{.type = "Succeeded"}};
  heeded = Heed(job, kNow);
  ASSERT_TRUE(heeded);
  EXPECT_TRUE(api::Has(heeded->status, "Succeeded"));
}

TEST(Wishes, AStopOutlivesARevival) {
  api::Job job = FailedJob();
  job.extensions.life = 1;
  job.extensions.stopped_by = "bob";
  const auto heeded = Heed(job, kNow);
  ASSERT_TRUE(heeded);
  EXPECT_EQ(heeded->status.verdict->cause, "stopped by bob");
  EXPECT_EQ(heeded->status.life, 1);
}

TEST(Wishes, AStoppedJobEndsItsReplicasWhateverItsPolicy) {
  api::Job job;
  job.metadata.name = "mnist";
  job.spec.replicas[api::Role::kWorker] = {.replicas = 1};
  job.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kNone;
  job.extensions.stopped_by = "ann";
  Observed observed;
  observed.replicas = {
      {.id = {api::Role::kWorker, 0}, .incarnation = "u", .phase = Phase::kRunning}};
  const Decision decision = Reconcile(job, observed, {.end_leftovers = false}, kNow);
  EXPECT_TRUE(WasStopped(decision.status));
  ASSERT_EQ(decision.actions.size(), 1);
  EXPECT_EQ(std::get<Stop>(decision.actions[0]).incarnation, "u");
}

}  // namespace
}  // namespace core
