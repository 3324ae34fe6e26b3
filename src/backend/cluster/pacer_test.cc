#include "backend/cluster/pacer.h"

#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "io/clock.h"
#include "io/testing/clock_step.h"

namespace backend::cluster {
namespace {

using std::chrono::milliseconds;

// A server that answers when the test says so.
class Server : public kube::Transport {
 public:
  void Send(kube::Request request, base::Duration, Answer answer) override {
    asked.push_back(request.path);
    open_.push_back(std::move(answer));
  }
  std::unique_ptr<kube::Stream> Open(kube::Request, base::Duration, Data, Answer) override {
    return nullptr;
  }
  void AnswerAll(int status, std::optional<base::Duration> retry_after = std::nullopt) {
    for (Answer& answer : std::exchange(open_, {}))
      answer(kube::Response{.status = status, .retry_after = retry_after});
  }
  size_t open() const { return open_.size(); }

  std::vector<std::string> asked;  // paths

 private:
  std::deque<Answer> open_;
};

class PacerTest : public ::testing::Test {
 protected:
  PacerTest() {
    for (int i = 0; i < 100'000; ++i) {
      pacer.Submit("a", [] { return kube::Request(); }, [](const auto&) {});
    }
  }

  // All that is under way is answered after `took`, and so on, so many times.
  void Rounds(int count, base::Duration took) {
    for (int i = 0; i < count; ++i) {
      pacer.Advance(now);
      now += took;
      server.AnswerAll(200);
    }
    pacer.Advance(now);
  }

  base::Time now{std::chrono::hours(1)};
  Server server;
  Pacer pacer{server};
};

TEST_F(PacerTest, SendsMoreAtOnceWhileAnswersComeQuickly) {
  Rounds(1000, milliseconds(2));
  EXPECT_EQ(server.open(), 64u);
}

TEST_F(PacerTest, SendsFewerAtOnceWhenAnswersBecomeSlow) {
  Rounds(1000, milliseconds(2));
  Rounds(20, milliseconds(500));
  EXPECT_EQ(server.open(), 16u);
}

TEST_F(PacerTest, KeepsItsShareOfAServerThatOthersKeepBusy) {
  Rounds(10, milliseconds(2));
  Rounds(30, milliseconds(500));
  EXPECT_EQ(server.open(), 16u);
}

TEST_F(PacerTest, PausesAndSendsOneAtATimeWhenTheServerSaysThatItHasTooMany) {
  for (int i = 0; i < 6; ++i) {
    pacer.Advance(now += std::chrono::seconds(2));
    server.AnswerAll(429);
  }
  pacer.Advance(now);
  EXPECT_EQ(server.open(), 0u);
  pacer.Advance(now += std::chrono::seconds(2));
  EXPECT_EQ(server.open(), 1u);
}

// Others may keep it busy. What can be written later, such as counts, is not written then.
TEST(Pacer, TheServerIsBusyWhileItsAnswersAreSlow) {
  Server server;
  Pacer pacer(server);
  base::Time now(std::chrono::hours(1));
  for (const auto& [took, busy] :
       {std::pair(2, false), std::pair(500, true), std::pair(2, false)}) {
    pacer.Submit("a", [] { return kube::Request(); }, [](const auto&) {});
    pacer.Advance(now);
    now += milliseconds(took);
    server.AnswerAll(200);
    pacer.Advance(now);
    EXPECT_EQ(pacer.IsBusy(), busy) << took << " ms";
  }
}

TEST(Pacer, WhatCanWaitGoesWhenNothingElseDoes) {
  Server server;
  Pacer pacer(server);
  pacer.idle().Send({.path = "event"}, milliseconds(1), [](const auto&) {});
  for (size_t i = 0; i < pacer.window(); ++i) {
    pacer.Submit("a", [] { return kube::Request{.path = "pod"}; }, [](const auto&) {});
  }
  pacer.Advance(base::Time(std::chrono::hours(1)));
  EXPECT_EQ(server.asked, std::vector<std::string>(pacer.window(), "pod"));
  server.AnswerAll(201);
  pacer.Advance(base::Time(std::chrono::hours(1)));
  EXPECT_EQ(server.asked.back(), "event");
}

TEST(Pacer, WhatCanWaitLeavesTheServerFreeForWhatCannot) {
  Server server;
  Pacer pacer(server);
  for (int i = 0; i < 100; ++i) pacer.idle().Send({}, milliseconds(1), [](const auto&) {});
  pacer.Advance(base::Time(std::chrono::hours(1)));
  EXPECT_EQ(server.open(), 4u);
  server.AnswerAll(201);
  pacer.Advance(base::Time(std::chrono::hours(1)));
  EXPECT_EQ(server.open(), 4u);
}

TEST(Pacer, AStepOfTheWallClockNeitherEndsAPauseNorMakesItLonger) {
  for (const base::Duration step : io::testing::kClockSteps) {
    Server server;
    Pacer pacer(server);
    for (int i = 0; i < 100; ++i) {
      pacer.Submit("a", [] { return kube::Request(); }, [](const auto&) {});
    }
    pacer.Advance(io::Now());
    server.AnswerAll(429, std::chrono::seconds(30));
    pacer.Advance(io::Now());
    const io::testing::ClockStep stepped(step);
    pacer.Advance(io::Now());
    EXPECT_EQ(server.open(), 0u) << step.count();
    EXPECT_LE(pacer.next().value_or(base::Time::max()), io::Now() + std::chrono::seconds(30))
        << step.count();
  }
}

}  // namespace
}  // namespace backend::cluster
