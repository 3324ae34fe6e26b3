#include "backend/cluster/pacer.h"

#include <deque>

#include <gtest/gtest.h>

namespace backend::cluster {
namespace {

using std::chrono::milliseconds;

// A server that answers when the test says so.
class Server : public kube::Transport {
 public:
  void Send(kube::Request, base::Duration, Answer answer) override {
    open_.push_back(std::move(answer));
  }
  std::unique_ptr<kube::Stream> Open(kube::Request, base::Duration, Data, Answer) override {
    return nullptr;
  }
  void AnswerAll(int status) {
    for (Answer& answer : std::exchange(open_, {})) answer(kube::Response{.status = status});
  }
  size_t open() const { return open_.size(); }

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
  Rounds(500, milliseconds(2));
  EXPECT_EQ(server.open(), 48u);
}

TEST_F(PacerTest, SendsFewerAtOnceWhenAnswersBecomeSlow) {
  Rounds(500, milliseconds(2));
  Rounds(20, milliseconds(500));
  EXPECT_LT(server.open(), 16u);
}

TEST_F(PacerTest, KeepsItsShareOfAServerThatOthersKeepBusy) {
  Rounds(10, milliseconds(2));
  Rounds(100, milliseconds(500));
  EXPECT_EQ(server.open(), 8u);
}

TEST_F(PacerTest, PausesAndSendsOneAtATimeWhenTheServerSaysThatItHasTooMany) {
  for (int i = 0; i < 5; ++i) {
    pacer.Advance(now += std::chrono::seconds(2));
    server.AnswerAll(429);
  }
  pacer.Advance(now);
  EXPECT_EQ(server.open(), 0u);
  pacer.Advance(now += std::chrono::seconds(2));
  EXPECT_EQ(server.open(), 1u);
}

}  // namespace
}  // namespace backend::cluster
