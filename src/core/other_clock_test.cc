// Times that were recorded under another clock: nothing waits for them.
#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace std::chrono_literals;
using namespace testing;

TEST(OtherClock, AStartThatIsStillToComeCountsFromNow) {
  World world(MakeJob({.worker = 1}));
  world.job.spec.run_policy.active_deadline_seconds = 60;
  world.Settle();
  world.job.status.start_time = world.now + 1h;
  world.Settle();
  EXPECT_EQ(world.job.status.start_time, world.now);
  world.After(60s).Settle();
  EXPECT_TRUE(api::Has(world.job.status, "Failed"));
}

TEST(OtherClock, LeftoversOfACompletionThatIsStillToComeAreEndedAtOnce) {
  World world(MakeJob({.worker = 2}));
  world.policy.end_leftovers = true;
  world.Settle().After(1s).End(kWorker0, 0).Settle();
  ASSERT_TRUE(api::Has(world.job.status, "Succeeded"));
  EXPECT_EQ(world.Live().size(), 1u);
  world.job.status.completion_time = world.now + 1h;
  world.Settle();
  EXPECT_TRUE(world.Live().empty());
}

}  // namespace
}  // namespace core
