#include "core/services.h"

#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace testing;
using api::CleanPodPolicy;

api::Job Ended(CleanPodPolicy policy) {
  api::Job job = MakeJob({.ps = 1, .worker = 2});
  job.spec.run_policy.clean_pod_policy = policy;
  job.status.conditions.push_back({.type = "Succeeded"});
  return job;
}

TEST(Services, AreMadeForEveryReplicaOfALivingJob) {
  const api::Job job = MakeJob({.worker = 2});
  EXPECT_EQ(WishFor(job, job.status, {}, kWorker1), ServiceWish::kMake);
}

TEST(Services, GoWithAReplicaThatWasScaledAway) {
  const api::Job job = MakeJob({.worker = 2});
  EXPECT_EQ(WishFor(job, job.status, {}, kWorker2), ServiceWish::kRemove);
  EXPECT_EQ(WishFor(job, job.status, {}, kPs0), ServiceWish::kRemove);
}

TEST(Services, OfASuspendedJobGo) {
  api::Job job = MakeJob({.worker = 2});
  job.spec.run_policy.suspend = true;
  EXPECT_EQ(WishFor(job, job.status, {}, kWorker0), ServiceWish::kRemove);
}

TEST(Services, OfAnEndedJobStayUnderNoneAndGoUnderAll) {
  const api::Job none = Ended(CleanPodPolicy::kNone), all = Ended(CleanPodPolicy::kAll);
  EXPECT_EQ(WishFor(none, none.status, {}, kWorker0), ServiceWish::kKeep);
  EXPECT_EQ(WishFor(all, all.status, {}, kWorker0), ServiceWish::kRemove);
}

TEST(Services, OfAnElasticWorkerThatMayFinishGoAfterIt) {
  api::Job job = MakeJob({.worker = 2});
  EXPECT_EQ(WishFor(job, job.status, Seen({Worker(2, Phase::kRunning)}), kWorker2),
            ServiceWish::kRemove);
  job.extensions.elastic = api::Elastic{1, 4};
  EXPECT_EQ(WishFor(job, job.status, Seen({Worker(2, Phase::kRunning)}), kWorker2),
            ServiceWish::kKeep);
  EXPECT_EQ(WishFor(job, job.status, Seen({Worker(2, Phase::kSucceeded)}), kWorker2),
            ServiceWish::kRemove);
}

TEST(Services, UnderRunningGoAfterTheirPodsAndStayWithThoseThatEnded) {
  const api::Job job = Ended(CleanPodPolicy::kRunning);
  Observed seen = Seen({Worker(0, Phase::kSucceeded), Ps(0, Phase::kRunning)});
  EXPECT_EQ(WishFor(job, job.status, seen, kWorker0), ServiceWish::kKeep);
  EXPECT_EQ(WishFor(job, job.status, seen, kPs0), ServiceWish::kKeep);
  seen.replicas[1].deleting = true;
  EXPECT_EQ(WishFor(job, job.status, seen, kPs0), ServiceWish::kRemove);
  EXPECT_EQ(WishFor(job, job.status, seen, kWorker1), ServiceWish::kRemove);
}

}  // namespace
}  // namespace core
