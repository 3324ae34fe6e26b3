#include "cli/job_follow.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "backend/cluster/testing.h"
#include "kube/testing.h"

namespace cli {
namespace {

using backend::cluster::testing::JobObject;
using backend::cluster::testing::PodObject;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using kube::testing::FakeTransport;
using kube::testing::kStart;

Json Versioned(Json object, int version) {
  object.at("metadata").get_object()["resourceVersion"] = std::to_string(version);
  return object;
}

Json JobThatIs(const std::string& condition, int version) {
  Json job = Versioned(JobObject(R"("runPolicy":{"cleanPodPolicy":"Running"},)"), version);
  job.get_object()["status"] =
      JsonObject{{"conditions", JsonArray{JsonObject{{"type", condition}, {"status", "True"}}}}};
  return job;
}

Json PodThatIs(const std::string& phase, int version) {
  return Versioned(PodObject("", fmt::format(R"("phase":"{}")", phase)), version);
}

std::string List(int version, JsonArray items) {
  return base::CompactJson(
      JsonObject{{"metadata", JsonObject{{"resourceVersion", std::to_string(version)}}},
                 {"items", std::move(items)}});
}

std::string Event(const std::string& type, Json object) {
  return base::CompactJson(JsonObject{{"type", type}, {"object", std::move(object)}}) + "\n";
}

struct JobFollowTest : ::testing::Test {
  void Advance() { follow.Advance(now); }
  // Both were listed at version 10, when the job ran, and are watched since.
  void Watch(JsonArray its_pods) {
    Advance();
    jobs.Reply(200, List(10, {JobThatIs("Running", 7)}));
    pods.Reply(200, List(10, std::move(its_pods)));
    Advance();
    ASSERT_TRUE(jobs.stream());
    ASSERT_TRUE(pods.stream());
  }

  base::Time now = kStart;
  FakeTransport jobs, pods;
  JobFollow follow{jobs, pods, "team-a", "mnist"};
};

// A sweep found a trial ended whose pods it had not seen yet, and read no word of it.
TEST_F(JobFollowTest, AJobIsNotOverBeforeItsPodsWereSeen) {
  Advance();
  jobs.Reply(200, List(20, {JobThatIs("Succeeded", 15)}));
  EXPECT_FALSE(follow.over());
  pods.Break();
  EXPECT_FALSE(follow.over());
  while (pods.asked.empty()) {
    now = follow.next().value();
    Advance();
  }
  pods.Reply(200, List(20, {PodThatIs("Succeeded", 14)}));
  EXPECT_TRUE(follow.over());
  EXPECT_EQ(follow.pods().size(), 1u);
  // One list of each is enough where it tells of that time.
  Advance();
  EXPECT_TRUE(pods.asked.empty());
}

TEST_F(JobFollowTest, AJobIsNotOverWhileTheWatchOfItsPodsIsBehind) {
  Watch({});
  // An outage: the job is watched again soon, the pods after a pause.
  for (FakeTransport* of : {&jobs, &pods})
    of->StreamEnds(std::unexpected(base::Error(base::ErrorKind::kUnavailable, "cut")));
  Advance();
  while (!jobs.stream()) {
    now = follow.next().value();
    Advance();
  }
  jobs.StreamSays(Event("MODIFIED", JobThatIs("Succeeded", 15)));
  EXPECT_FALSE(follow.over());
  Advance();
  ASSERT_EQ(pods.asked.size(), 1u);
  EXPECT_FALSE(follow.over());
  pods.Reply(200, List(16, {PodThatIs("Succeeded", 14)}));
  EXPECT_TRUE(follow.over());
  EXPECT_EQ(follow.pods().size(), 1u);
}

// `run`, `wait` and `logs -f` left a job that Kueue held back, as if a person had suspended it.
TEST_F(JobFollowTest, ASuspendedJobIsQueuedWhenItsQueueHoldsItBack) {
  Advance();
  Json job = Versioned(JobObject(R"("runPolicy":{"suspend":true},)"), 7);
  job.get_object()["status"] =
      JsonObject{{"conditions", JsonArray{JsonObject{{"type", "Suspended"}, {"status", "True"}}}}};
  jobs.Reply(200, List(10, {job}));
  pods.Reply(200, List(10, {}));
  EXPECT_TRUE(follow.over());
  EXPECT_FALSE(follow.IsQueued());
  Advance();
  job.at("metadata").get_object()["labels"] = JsonObject{{"kueue.x-k8s.io/queue-name", "gpus"}};
  jobs.StreamSays(Event("MODIFIED", Versioned(std::move(job), 11)));
  EXPECT_TRUE(follow.IsQueued());
}

TEST_F(JobFollowTest, APodThatRunsOnKeepsAJobFromBeingOver) {
  Watch({PodThatIs("Running", 8)});
  jobs.StreamSays(Event("MODIFIED", JobThatIs("Failed", 15)));
  Advance();
  pods.Reply(200, List(16, {PodThatIs("Running", 8)}));
  EXPECT_FALSE(follow.over());
  Advance();
  EXPECT_TRUE(pods.asked.empty());  // once is enough
  pods.StreamSays(Event("MODIFIED", PodThatIs("Failed", 17)));
  EXPECT_TRUE(follow.over());
}

TEST_F(JobFollowTest, AListOfPodsIsBelievedWhateverItsVersion) {
  Watch({});
  jobs.StreamSays(Event("MODIFIED", JobThatIs("Succeeded", 1'000'000)));
  Advance();
  pods.Reply(200, List(11, {}));
  EXPECT_TRUE(follow.over());
  Advance();
  EXPECT_TRUE(pods.asked.empty());
}

TEST_F(JobFollowTest, WhileAJobRunsItsPodsAreListedOnce) {
  Watch({});
  jobs.StreamSays(Event("MODIFIED", JobThatIs("Running", 15)));
  Advance();
  EXPECT_TRUE(pods.asked.empty());
  EXPECT_TRUE(pods.stream());
}

}  // namespace
}  // namespace cli
