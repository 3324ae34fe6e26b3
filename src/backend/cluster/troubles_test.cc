#include "backend/cluster/troubles.h"

#include <gtest/gtest.h>

#include "backend/cluster/testing.h"

namespace backend::cluster {
namespace {

using namespace testing;
using namespace std::chrono_literals;

struct TroublesTest : ::testing::Test {
  Ears ears;
  Troubles troubles;
  const base::Time gone_by = *base::ParseTime("2026-01-01T00:01:30Z");

  std::optional<base::Time> Tell(const Json& pod, base::Time now) {
    return troubles.Tell(MakeJob(), {*ReadPod(pod)}, now, ears);
  }
};

constexpr const char* kDeleted =
    R"(,"deletionTimestamp":"2026-01-01T00:01:30Z","deletionGracePeriodSeconds":30)";

TEST_F(TroublesTest, WhatKeepsAPodFromStartingIsToldOnce) {
  const Json pod = PodObject(
      "", R"("phase":"Pending",)" + ContainerState(R"("waiting":{"reason":"ErrImagePull"})"));
  Tell(pod, gone_by);
  Tell(pod, gone_by);
  ASSERT_EQ(ears.heard.size(), 1u);
  EXPECT_EQ(ears.heard[0].reason, "ErrImagePull");
}

TEST_F(TroublesTest, APodThatShouldHaveGoneIsToldOfWithWhatToDo) {
  const Json pod = PodObject(kDeleted, R"("phase":"Running")");
  EXPECT_EQ(Tell(pod, gone_by), gone_by + 60s);
  EXPECT_TRUE(ears.heard.empty());
  EXPECT_FALSE(Tell(pod, gone_by + 60s));
  Tell(pod, gone_by + 90s);
  EXPECT_EQ(ears.heard, (std::vector<core::Event>{
                            {true, "PodNotGone",
                             "Pod mnist-worker-0 was deleted, and node n does not say that it is "
                             "gone. If the node is lost: kubectl delete pod mnist-worker-0 -n "
                             "team-a --force"}}));
}

TEST_F(TroublesTest, APodThatHasEndedIsNotWaitedFor) {
  EXPECT_FALSE(Tell(PodObject(kDeleted, R"("phase":"Failed",)" + Terminated(1)), gone_by + 90s));
  EXPECT_TRUE(ears.heard.empty());
}

}  // namespace
}  // namespace backend::cluster
