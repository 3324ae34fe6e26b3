#include "core/endings.h"

#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

TEST(Endings, AFailureIsTakenInOnceAnotherAttemptIsWanted) {
  World world(MakeJob({.worker = 2}));
  world.Settle();
  const ReplicaState failed = Exited(Worker(1, Phase::kFailed), 137);
  EXPECT_FALSE(IsTakenIn(world.job, world.job.status, failed));
  world.job.status.gang.attempt = ++world.job.status.attempt;
  EXPECT_TRUE(IsTakenIn(world.job, world.job.status, failed));
}

TEST(Endings, OfASuspendedJobAreTakenIn) {
  World world(MakeJob({.worker = 2}));
  world.Settle();
  const ReplicaState ended = Exited(Worker(0, Phase::kFailed), 143);
  world.job.spec.run_policy.suspend = true;
  EXPECT_FALSE(IsTakenIn(world.job, world.job.status, ended)) << "not published yet";
  world.Settle();
  EXPECT_TRUE(IsTakenIn(world.job, world.job.status, ended));
  world.job.spec.run_policy.suspend = false;
  world.Settle();
  EXPECT_TRUE(IsTakenIn(world.job, world.job.status, ended));
}

}  // namespace
}  // namespace core
