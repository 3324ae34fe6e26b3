#include "kube/events.h"

#include <gtest/gtest.h>

#include "kube/testing.h"

namespace kube {
namespace {

using namespace testing;

struct EventsTest : ::testing::Test {
  FakeTransport server;
  Events events{server, "tfjob-controller"};
  base::Time now = kStart;
  ObjectRef job{"kubeflow.org/v1", "TFJob", "ns", "mnist", "u-1"};

  // Tells and returns what was sent for it; an empty request when nothing was.
  Request Tell(const std::string& reason, const std::string& message, int status = 201) {
    events.Tell(job, false, reason, message);
    events.Advance(now);
    if (server.asked.empty()) return {.method = ""};
    Request request = server.asked.front().request;
    server.Reply(status, "{}");
    return request;
  }
};

TEST_F(EventsTest, AreAboutTheObject) {
  const Request request = Tell("TFJobSucceeded", "done");
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/api/v1/namespaces/ns/events");
  const base::Json event = J(request.body);
  EXPECT_EQ(
      base::CompactJson(event.at("involvedObject")),
      R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","namespace":"ns","name":"mnist","uid":"u-1"})");
  EXPECT_EQ(base::StringOr(event, "reason"), "TFJobSucceeded");
  EXPECT_EQ(base::StringOr(event, "type"), "Normal");
  EXPECT_EQ(base::StringOr(event.at("source"), "component"), "tfjob-controller");
}

TEST_F(EventsTest, SaidAgainRaiseTheCount) {
  Tell("FailedCreatePod", "quota");
  const Request again = Tell("FailedCreatePod", "quota", 200);
  EXPECT_EQ(again.method, "PATCH");
  EXPECT_EQ(base::IntOr(J(again.body), "count"), 2);
}

TEST_F(EventsTest, ThatAreGoneFromTheServerAreToldAnew) {
  Tell("A", "a");
  Tell("A", "a", 404);
  EXPECT_EQ(Tell("A", "a").method, "POST");
}

TEST_F(EventsTest, ManyOfOneReasonBecomeOne) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Tell("Made", std::to_string(i)).method, "POST");
  const Request combined = Tell("Made", "10");
  EXPECT_EQ(combined.method, "POST");
  EXPECT_NE(combined.body.find("(combined from similar events): 10"), std::string::npos);
  EXPECT_EQ(Tell("Made", "11", 200).method, "PATCH");
}

TEST_F(EventsTest, OfOneObjectDryUpAndComeBackSlowly) {
  for (int i = 0; i < 25; ++i) Tell("R" + std::to_string(i), "m");
  EXPECT_EQ(Tell("one", "more").method, "");
  EXPECT_EQ(events.dropped(), 1u);
  job.uid = "u-2";
  EXPECT_EQ(Tell("another", "object").method, "POST");
  job.uid = "u-1";
  now += 5min;
  EXPECT_EQ(Tell("one", "later").method, "POST");
}

TEST_F(EventsTest, AreCutBetweenCharactersToWhatTheServerTakes) {
  std::string message(1100, 'x');
  message.replace(1020, 2, "\xC3\xA9");
  const base::Json event = J(Tell("Long", message).body);
  const std::string sent = base::StringOr(event, "message");
  EXPECT_LE(sent.size(), 1024u);
  EXPECT_TRUE(sent.ends_with("..."));
}

TEST_F(EventsTest, AreFewAtOnceAndDroppedRatherThanHoarded) {
  for (int i = 0; i < 5000; ++i) {
    job.uid = std::to_string(i);
    events.Tell(job, false, "R", "m");
  }
  events.Advance(now);
  EXPECT_EQ(server.asked.size(), 4u);
  EXPECT_EQ(events.dropped(), 5000u - 4096u);
}

}  // namespace
}  // namespace kube
