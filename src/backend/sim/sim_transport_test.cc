#include "backend/sim/sim_transport.h"

#include <gtest/gtest.h>

namespace backend::sim {
namespace {

using base::Result;
using kube::Response;
using namespace std::chrono_literals;

class SimTransportTest : public ::testing::Test {
 protected:
  void Begin() {
    transport = std::make_unique<SimTransport>(SimTransport::World{agenda, server, traffic, random},
                                               [this] {
                                                 killed = true;
                                                 transport.reset();
                                               });
  }
  void Post(const std::string& name) {
    transport->Send({.method = "POST",
                     .path = "/api/v1/namespaces/default/configmaps",
                     .body = R"({"metadata":{"name":")" + name + R"("}})"},
                    10s, [this](Result<Response> answer) { answers.push_back(std::move(answer)); });
  }
  void Pass(base::Duration time) { agenda.RunUntil(agenda.now() + time); }
  bool Stored(const std::string& name) const {
    return server.store().Get(kConfigMaps, "default/" + name) != nullptr;
  }

  Agenda agenda{1, base::Time(1'800'000'000s)};
  Random random{1};
  ApiServer server{agenda};
  Traffic traffic;
  bool killed = false;
  std::unique_ptr<SimTransport> transport;
  std::vector<Result<Response>> answers;
};

TEST_F(SimTransportTest, AnAnswerComesLaterAndOnce) {
  Begin();
  Post("a");
  EXPECT_TRUE(answers.empty());
  Pass(1min);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0]->status, 201);
}

TEST_F(SimTransportTest, OneKilledBeforeItsWriteHasNotWritten) {
  Begin();
  transport->SetPlan({0, Fault::kKilledBefore});
  Post("a");
  Pass(1min);
  EXPECT_TRUE(killed && answers.empty());
  EXPECT_FALSE(Stored("a"));
}

TEST_F(SimTransportTest, OneKilledAfterItsWriteHearsNothingOfIt) {
  Begin();
  transport->SetPlan({0, Fault::kKilledStored});
  Post("a");
  Pass(1min);
  EXPECT_TRUE(killed && answers.empty());
  EXPECT_TRUE(Stored("a"));
}

TEST_F(SimTransportTest, WhatADeadProcessHadSentStillArrives) {
  Begin();
  Post("a");
  transport.reset();
  Pass(1min);
  EXPECT_TRUE(answers.empty());
  EXPECT_TRUE(Stored("a"));
}

TEST_F(SimTransportTest, ALostAnswerIsAnErrorAboutSomethingDone) {
  Begin();
  transport->SetPlan({0, Fault::kAnswerLost});
  Post("a");
  Pass(1min);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers[0]);
  EXPECT_TRUE(Stored("a"));
}

TEST_F(SimTransportTest, ThrottlingSaysWhenToComeAgain) {
  Begin();
  transport->SetPlan({0, Fault::kThrottled});
  Post("a");
  Pass(1min);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0]->status, 429);
  EXPECT_TRUE(answers[0]->retry_after);
  EXPECT_FALSE(Stored("a"));
}

TEST_F(SimTransportTest, AStreamTellsInOrderAndEndsWithItsTime) {
  Begin();
  std::string text;
  std::vector<Result<Response>> ends;
  const auto stream = transport->Open(
      {.path = "/api/v1/configmaps?watch=1&timeoutSeconds=100&allowWatchBookmarks=true"}, 120s,
      [&](std::string_view bytes) { text += bytes; },
      [&](Result<Response> end) { ends.push_back(std::move(end)); });
  Post("a");
  Pass(10s);
  Post("b");
  Pass(85s);
  EXPECT_LT(text.find("\"name\":\"a\""), text.find("\"name\":\"b\""));
  EXPECT_NE(text.find("BOOKMARK"), std::string::npos);
  EXPECT_TRUE(ends.empty());
  Pass(10s);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0]->status, 200);
}

TEST_F(SimTransportTest, AStreamFromAServerThatIsBehindWaits) {
  Begin();
  std::string text;
  const auto stream = transport->Open(
      {.path = "/api/v1/configmaps?watch=1"}, 120s, [&](std::string_view bytes) { text += bytes; },
      [](Result<Response>) {});
  Pass(1s);
  transport->SetStale(server.store().version(), false);
  Post("a");
  Pass(10s);
  EXPECT_EQ(text, "");
  transport->SetStale(std::nullopt, false);
  Pass(1s);
  EXPECT_NE(text, "");
}

TEST_F(SimTransportTest, ADeletionWithoutAUidIsAFinding) {
  Begin();
  transport->Send({.method = "DELETE", .path = "/api/v1/namespaces/default/configmaps/a"}, 10s,
                  [](Result<Response>) {});
  EXPECT_NE(traffic.finding(), "");
}

}  // namespace
}  // namespace backend::sim
