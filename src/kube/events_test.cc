#include "kube/events.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "kube/testing.h"

namespace kube {
namespace {

using base::Time;
using testing::J;
using testing::kStart;
using namespace std::chrono_literals;

class EventsTest : public ::testing::Test {
 protected:
  void Record(const std::string& message, const std::string& reason = "R",
              const std::string& name = "job", const std::string& type = "Normal") {
    events.Record({.api_version = "kubeflow.org/v1",
                   .kind = "TFJob",
                   .ns = "team-a",
                   .name = name,
                   .uid = "u"},
                  type, reason, message, now);
  }

  // Sends all there is, answering with success; the requests.
  std::vector<Request> Flush(int status = 201) {
    std::vector<Request> out;
    for (;;) {
      events.Advance(now);
      if (transport.asked.empty()) return out;
      out.push_back(transport.asked.front().request);
      transport.Reply(status, "{}");
    }
  }

  Time now = kStart;
  testing::FakeTransport transport;
  Events events{transport, "tfjob-controller", 2};
};

TEST_F(EventsTest, AnEventIsPosted) {
  Record("Created pod: a");
  const auto sent = Flush();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].method, "POST");
  EXPECT_EQ(sent[0].path, "/api/v1/namespaces/team-a/events");
  base::Json event = J(sent[0].body);
  const std::string name = base::StringOr(event.at("metadata"), "name");
  EXPECT_TRUE(name.starts_with("job.") && name.size() == 20) << name;
  event.at("metadata").get_object().erase("name");
  EXPECT_EQ(event, J(R"({"apiVersion":"v1","kind":"Event","metadata":{"namespace":"team-a"},
      "involvedObject":{"apiVersion":"kubeflow.org/v1","kind":"TFJob","namespace":"team-a",
                        "name":"job","uid":"u"},
      "type":"Normal","reason":"R","message":"Created pod: a",
      "source":{"component":"tfjob-controller"},"reportingComponent":"tfjob-controller",
      "count":1,"firstTimestamp":"2026-11-15T21:50:00Z","lastTimestamp":"2026-11-15T21:50:00Z"})"));
  EXPECT_TRUE(events.idle());
}

TEST_F(EventsTest, TheSameAgainRaisesTheCount) {
  Record("m");
  const std::string name = base::StringOr(J(Flush()[0].body).at("metadata"), "name");
  now += 3s;
  Record("m");
  const auto sent = Flush(200);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].method, "PATCH");
  EXPECT_EQ(sent[0].path, "/api/v1/namespaces/team-a/events/" + name);
  EXPECT_EQ(J(sent[0].body),
            J(R"({"count":2,"message":"m","lastTimestamp":"2026-11-15T21:50:03Z"})"));
}

TEST_F(EventsTest, WhatHappensWhileOneIsUnderWayIsToldInOne) {
  Record("m");
  events.Advance(now);
  for (int i = 0; i < 5; ++i) Record("m");
  events.Advance(now);
  ASSERT_EQ(transport.asked.size(), 1u);
  transport.Reply(201, "{}");
  const auto sent = Flush(200);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(base::IntOr(J(sent[0].body), "count"), 6);
}

TEST_F(EventsTest, AnEventThatIsGoneIsToldAnew) {
  Record("m");
  Flush();
  Record("m");
  events.Advance(now);
  transport.Reply(404, "{}");
  const auto sent = Flush();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].method, "POST");
  EXPECT_EQ(base::IntOr(J(sent[0].body), "count"), 2);
}

TEST_F(EventsTest, FromTheTenthOnSimilarOnesAreCombined) {
  for (int i = 0; i < 12; ++i) Record("m" + std::to_string(i));
  const auto sent = Flush();
  ASSERT_EQ(sent.size(), 10u);
  EXPECT_EQ(base::StringOr(J(sent[8].body), "message"), "m8");
  EXPECT_EQ(base::StringOr(J(sent[9].body), "message"), "(combined from similar events): m11");
  EXPECT_EQ(base::IntOr(J(sent[9].body), "count"), 3);
}

TEST_F(EventsTest, OtherReasonsAndLaterTimesAreNotSimilar) {
  for (int i = 0; i < 9; ++i) Record("m" + std::to_string(i));
  Record("x", "Other");
  now += 11min;
  Record("m10");
  for (const Request& request : Flush()) {
    EXPECT_FALSE(request.body.contains("combined")) << request.body;
  }
}

TEST_F(EventsTest, AnObjectHasTwentyFiveAndThenOneInFiveMinutes) {
  for (int i = 0; i < 100; ++i) Record("m", "R" + std::to_string(i));
  EXPECT_EQ(Flush().size(), 25u);
  EXPECT_EQ(events.dropped(), 75u);
  Record("m", "R", "another");
  EXPECT_EQ(Flush().size(), 1u);
  now += 4min;
  Record("m", "Early");
  EXPECT_EQ(Flush().size(), 0u);
  now += 1min;
  Record("m", "Late");
  Record("m", "Later");
  EXPECT_EQ(Flush().size(), 1u);
}

TEST_F(EventsTest, AWarningIsToldAfterAnyNumberOfNormalEvents) {
  for (int i = 0; i < 101; ++i) Record("Created service: s-" + std::to_string(i), "Created");
  Record("exceeded quota", "FailedCreatePod", "job", "Warning");
  const auto sent = Flush();
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(base::StringOr(J(sent.back().body), "reason"), "FailedCreatePod");
}

TEST_F(EventsTest, NoMoreThanToldAreUnderWay) {
  for (int i = 0; i < 10; ++i) Record("m", "R" + std::to_string(i));
  events.Advance(now);
  EXPECT_EQ(transport.asked.size(), 2u);
  EXPECT_FALSE(events.next());
  transport.Reply(201, "{}");
  EXPECT_EQ(events.next(), now);
  events.Advance(now);
  EXPECT_EQ(transport.asked.size(), 2u);
}

TEST_F(EventsTest, AFailedOneIsTriedAFewTimesAndThenDropped) {
  Record("m");
  int tries = 0;
  while (!events.idle()) {
    now = std::max(now, *events.next());
    events.Advance(now);
    ASSERT_EQ(transport.asked.size(), 1u);
    transport.Reply(503, "");
    ASSERT_LT(++tries, 100);
  }
  EXPECT_EQ(tries, 5);
  EXPECT_GT(now, kStart + 10s);
  EXPECT_EQ(events.dropped(), 1u);
}

TEST_F(EventsTest, ARefusedOneIsNotTriedAgain) {
  Record("m");
  EXPECT_EQ(Flush(403).size(), 1u);
  EXPECT_EQ(events.dropped(), 1u);
}

TEST_F(EventsTest, AnAnswerThatGotLostDoesNotDoubleTheEvent) {
  Record("m");
  events.Advance(now);
  const std::string first = transport.asked.front().request.body;
  transport.Break();
  now += 1min;
  const auto again = Flush(409);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].body, first);
  EXPECT_EQ(events.dropped(), 0u);
  Record("m");
  EXPECT_EQ(Flush(200).at(0).method, "PATCH");
}

TEST_F(EventsTest, ALongMessageIsCutBetweenCharacters) {
  std::string message(1023, 'x');
  message += "\xc3\xa9 and more";
  Record(message);
  EXPECT_EQ(base::StringOr(J(Flush()[0].body), "message"), std::string(1023, 'x'));
}

TEST_F(EventsTest, MemoryIsBoundedWhenNothingGetsThrough) {
  for (int i = 0; i < 6000; ++i) Record("m", "R", "job" + std::to_string(i));
  EXPECT_EQ(events.dropped(), 6000u - 4096u);
  EXPECT_EQ(Flush().size(), 4096u);
  Record("m", "R", "one-more");
  EXPECT_EQ(Flush().size(), 1u);
}

TEST(Events, AnAnswerAfterTheEndIsIgnored) {
  testing::FakeTransport transport;
  {
    Events events(transport, "c");
    events.Record({.name = "x"}, "Normal", "R", "m", kStart);
    events.Advance(kStart);
  }
  transport.Reply(201, "{}");
}

}  // namespace
}  // namespace kube
