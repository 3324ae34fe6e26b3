#include "master/syncs.h"

#include <gtest/gtest.h>

namespace master {
namespace {

TEST(Syncs, APointIsReadyWhenAllCameWhoRanAtItsFirstArrival) {
  Syncs syncs;
  EXPECT_FALSE(syncs.Arrive("start", 0, {0, 1, 2}));
  EXPECT_FALSE(syncs.Arrive("start", 0, {0, 1, 2, 3}));
  EXPECT_FALSE(syncs.Arrive("start", 1, {0, 1, 2, 3}));
  EXPECT_TRUE(syncs.Arrive("start", 2, {0, 1, 2, 3}));
  EXPECT_TRUE(syncs.Arrive("start", 3, {0, 1, 2, 3}));  // came later: nobody waits for it
  EXPECT_FALSE(syncs.Arrive("another", 0, {0, 1}));
}

TEST(Syncs, WhoIsGoneIsNotWaitedFor) {
  Syncs syncs;
  EXPECT_FALSE(syncs.Arrive("start", 0, {0, 1}));
  EXPECT_FALSE(syncs.Keep({0, 1}));
  EXPECT_TRUE(syncs.Keep({0}));
  EXPECT_TRUE(syncs.Arrive("start", 0, {0}));
}

TEST(Syncs, ASignalIsReadyOnceItWasGivenAndUntilItIsDeleted) {
  Syncs syncs;
  EXPECT_FALSE(syncs.Wait("go", false));
  EXPECT_TRUE(syncs.Wait("go", true));
  EXPECT_TRUE(syncs.Wait("go", false));
  syncs.Delete("go");
  EXPECT_FALSE(syncs.Wait("go", false));
}

TEST(Syncs, SurvivesARestart) {
  Syncs syncs;
  syncs.Arrive("start", 0, {0, 1});
  syncs.Wait("go", true);
  const auto again = Syncs::FromJson(syncs.ToJson());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(*again, syncs);
  EXPECT_FALSE(Syncs::FromJson(base::Json("text")).has_value());
}

}  // namespace
}  // namespace master
