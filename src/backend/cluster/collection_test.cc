#include "backend/cluster/collection.h"

#include <gtest/gtest.h>

#include "backend/cluster/pod.h"
#include "backend/cluster/testing.h"

namespace backend::cluster {
namespace {

using base::Json;

const Key kJob{"team-a", "mnist"};
const Key kPod{"team-a", "mnist-worker-0"};

Json At(int version) {
  Json pod = testing::PodObject("", R"("phase":"Running")");
  pod.at("metadata").get_object()["resourceVersion"] = std::to_string(version);
  return pod;
}

struct CollectionTest : ::testing::Test {
  Collection<Pod> pods{ReadPod, [](const Key&) {}};
};

TEST_F(CollectionTest, WhatASurveyDoesNotNameIsGone) {
  pods.Apply(At(9));
  pods.Survey(kJob, {}, 12);
  EXPECT_FALSE(pods.Find(kPod));
}

TEST_F(CollectionTest, WhatIsNewerThanASurveyStays) {
  pods.Learn(At(15));
  pods.Survey(kJob, {}, 12);
  EXPECT_TRUE(pods.Find(kPod));
}

TEST_F(CollectionTest, AWatchThatIsBehindASurveyBringsNothingBack) {
  pods.Survey(kJob, {}, 12);
  pods.Apply(At(10));
  EXPECT_FALSE(pods.Find(kPod));
  pods.Apply(At(13));
  EXPECT_TRUE(pods.Find(kPod));
}

TEST_F(CollectionTest, AnotherJobsPodsAreNotTheSurveys) {
  pods.Apply(At(9));
  pods.Survey({"team-a", "other"}, {}, 12);
  EXPECT_TRUE(pods.Find(kPod));
}

// Found by the simulator, travel/3300011212: a pod of a job before this one was taken to be there
// for ever, so that the new job's was never made.
TEST_F(CollectionTest, ALateAnswerDoesNotBringBackWhatAListNoLongerHas) {
  pods.Apply(At(9));
  pods.Remove(At(12));
  pods.ListBegin();
  pods.ListEnd(14);
  pods.Learn(At(11));
  EXPECT_FALSE(pods.Find(kPod));
  pods.Learn(At(15));
  EXPECT_TRUE(pods.Find(kPod));
}

TEST_F(CollectionTest, ABookmarkTellsHowFarTheWatchIs) {
  pods.Apply(At(9));
  EXPECT_EQ(pods.heard(), 9u);
  pods.Reached(30);
  EXPECT_EQ(pods.heard(), 30u);
}

// Whoever waits for a job where nothing happens gave up on a cluster that had been back for long.
TEST_F(CollectionTest, ABookmarkTellsThatTheWatchIsOpenAgain) {
  pods.Trouble(base::Error(base::ErrorKind::kUnavailable, "cut"));
  EXPECT_EQ(pods.trouble(), "cut");
  pods.Reached(30);
  EXPECT_EQ(pods.trouble(), "");
}

}  // namespace
}  // namespace backend::cluster
