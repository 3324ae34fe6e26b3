#include <gtest/gtest.h>

#include "backend/cluster/testing.h"
#include "kube/testing.h"

namespace backend::cluster {
namespace {

using base::Json;
using kube::testing::kStart;

const Key kPod{"team-a", "mnist-worker-0"};

struct SurveyTest : testing::WithDeeds {
  const Deeds::JobPtr job = std::make_shared<const api::Job>(testing::MakeJob());
  int answers = 0;
  std::optional<base::Error> error;

  void Begin(kube::Version at_least) {
    deeds.SurveyPods(job, at_least, [this](std::optional<base::Error> with) {
      ++answers;
      error = std::move(with);
    });
    pacer.Advance(kStart);
  }
  static std::string Page(const std::string& version, const std::string& items,
                          const std::string& next = "") {
    return fmt::format(R"({{"metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":{}}})",
                       version, next, items);
  }
  static std::string Items(const std::string& name) {
    Json pod = testing::PodObject("", R"("phase":"Running")");
    pod.at("metadata").get_object()["name"] = name;
    pod.at("metadata").get_object()["resourceVersion"] = "11";
    return "[" + base::CompactJson(pod) + "]";
  }
};

TEST_F(SurveyTest, GoesOverAllPages) {
  pods.Apply(testing::PodObject(R"(,"generateName":"x")", ""));
  Begin(5);
  transport.Reply(200, Page("12", Items("mnist-worker-1"), "more"));
  EXPECT_EQ(answers, 0);
  pacer.Advance(kStart);
  ASSERT_EQ(transport.asked.size(), 1u);
  EXPECT_TRUE(transport.asked.front().request.path.ends_with("&limit=200&continue=more"));
  EXPECT_TRUE(pods.Find(kPod)) << "may be on a page to come";
  transport.Reply(200, Page("12", Items("mnist-worker-2")));
  EXPECT_EQ(answers, 1);
  EXPECT_FALSE(error);
  EXPECT_FALSE(pods.Find(kPod));
  EXPECT_EQ(pods.all().size(), 2u);
}

TEST_F(SurveyTest, AnOlderListIsNotBelieved) {
  pods.Apply(testing::PodObject("", ""));
  Begin(12);
  transport.Reply(200, Page("11", "[]"));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), base::ErrorKind::kUnavailable);
  EXPECT_TRUE(pods.Find(kPod));
}

TEST_F(SurveyTest, WhatIsNoListIsAnError) {
  pods.Apply(testing::PodObject("", ""));
  for (const char* body : {"{}", "[]", R"({"metadata":{"resourceVersion":"12"},"items":7})", "x"}) {
    error.reset();
    Begin(5);
    transport.Reply(200, body);
    EXPECT_TRUE(error) << body;
  }
  EXPECT_TRUE(pods.Find(kPod));
}

TEST_F(SurveyTest, AListWithoutItemsIsEmpty) {
  pods.Apply(testing::PodObject("", ""));
  Begin(5);
  transport.Reply(200, R"({"metadata":{"resourceVersion":"12"},"items":null})");
  EXPECT_FALSE(error);
  EXPECT_TRUE(pods.all().empty());
}

TEST_F(SurveyTest, AListThatDoesNotEndIsAnError) {
  Begin(5);
  for (int i = 0; i < 2000 && answers == 0; ++i) {
    transport.Reply(200, Page("12", "[]", "again"));
    pacer.Advance(kStart);
  }
  EXPECT_TRUE(error);
}

}  // namespace
}  // namespace backend::cluster
