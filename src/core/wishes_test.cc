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
