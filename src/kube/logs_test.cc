#include "kube/logs.h"

#include <vector>

#include <gtest/gtest.h>

#include "kube/testing.h"

namespace kube {
namespace {

using base::Error;
using base::ErrorKind;
using base::Time;
using testing::kStart;
using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

TEST(LogPath, NamesWhatWasAskedFor) {
  EXPECT_EQ(LogPath({.ns = "n", .pod = "p"}), "/api/v1/namespaces/n/pods/p/log");
  EXPECT_EQ(LogPath({.ns = "n",
                     .pod = "p",
                     .container = "c",
                     .follow = true,
                     .timestamps = true,
                     .previous = true,
                     .tail_lines = 0,
                     .since_seconds = 5}),
            "/api/v1/namespaces/n/pods/p/log?container=c&follow=true&timestamps=true&previous=true&"
            "tailLines=0&sinceSeconds=5");
}

// A line written in this nanosecond of the minute.
std::string At(const std::string& second, const std::string& text) {
  return "2026-11-15T21:50:" + second + "Z " + text + "\n";
}

class LogFollowTest : public ::testing::Test {
 protected:
  void Open() {
    log.Advance(now);
    Advance(log);
  }
  // To where it waits for an answer.
  void Advance(LogFollow& follow) {
    while (const auto next = follow.next()) {
      now = std::max(now, *next);
      follow.Advance(now);
    }
  }
  void Cut() {
    transport.StreamEnds(std::unexpected(Error(ErrorKind::kUnavailable, "cut")));
    Open();
  }
  std::string Path() { return transport.stream()->request.path; }

  Time now = kStart;
  testing::FakeTransport transport;
  Strings lines;
  LogFollow log{transport,
                {.ns = "n", .pod = "p", .tail_lines = 10},
                [this](std::string_view line, std::string_view) { lines.emplace_back(line); }};
  LogFollow of_one{transport,
                   {.ns = "n", .pod = "p", .uid = "u1"},
                   [this](std::string_view line, std::string_view) { lines.emplace_back(line); }};
};

TEST_F(LogFollowTest, TellsLinesInWhateverPiecesTheyCome) {
  Open();
  EXPECT_TRUE(Path().ends_with("?follow=true&timestamps=true&tailLines=10"));
  const std::string text =
      At("01.000000001", "one") + At("01.000000002", "two words") + At("01.000000003", "");
  for (const char c : text) transport.StreamSays({&c, 1});
  EXPECT_EQ(lines, (Strings{"one", "two words", ""}));
}

TEST_F(LogFollowTest, EndsWithTheContainer) {
  Open();
  transport.StreamSays("2026-11-15T21:50:01.000000001Z no end of line");
  transport.StreamEnds(Response{.status = 200});
  EXPECT_EQ(lines, (Strings{"no end of line"}));
  EXPECT_FALSE(log.ended());
  Open();
  ASSERT_EQ(transport.asked.size(), 1u);
  EXPECT_EQ(transport.asked[0].request.path, "/api/v1/namespaces/n/pods/p");
  transport.Reply(200, R"({"status":{"phase":"Succeeded"}})");
  // What came between the end of the stream and that of the container.
  Open();
  transport.StreamSays(At("01.000000001", "no end of line") + At("01.000000002", "last"));
  transport.StreamEnds(Response{.status = 200});
  EXPECT_TRUE(log.ended());
  EXPECT_FALSE(log.error());
  EXPECT_EQ(lines, (Strings{"no end of line", "last"}));
}

TEST_F(LogFollowTest, AnEmptyLogOfAPodThatWaitsIsNotItsEnd) {
  Open();
  for (int i = 0; i < 5; ++i) {
    transport.StreamEnds(Response{.status = 200});
    Open();
    transport.Reply(200, R"({"status":{"phase":"Pending"}})");
    EXPECT_FALSE(log.ended());
    Open();
    ASSERT_TRUE(transport.stream());
  }
  EXPECT_GT(now, kStart + 1s);
}

TEST_F(LogFollowTest, EndsWithThePod) {
  Open();
  transport.StreamSays(At("01.0", "a"));
  transport.StreamEnds(Response{.status = 200});
  Open();
  transport.Reply(404, "{}");
  EXPECT_TRUE(log.ended());
  EXPECT_FALSE(log.error());
}

TEST_F(LogFollowTest, AsksAgainWhenThePodCannotBeSeen) {
  Open();
  transport.StreamEnds(Response{.status = 200});
  for (const char* body : {"x", "[", ""}) {
    Open();
    transport.Reply(200, body);
    EXPECT_TRUE(log.error());
  }
  Open();
  transport.Break();
  EXPECT_FALSE(log.ended());
  Open();
  EXPECT_EQ(transport.asked.size(), 1u);
}

// Whether the log is over when the pod looks like this.
bool IsOverWhen(const std::string& pod, const std::string& container = "") {
  testing::FakeTransport transport;
  LogFollow log(transport, {.ns = "n", .pod = "p", .container = container}, [](auto, auto) {});
  log.Advance(kStart);
  transport.StreamEnds(Response{.status = 200});
  log.Advance(kStart);
  transport.Reply(200, pod);
  const bool at_once = log.next() == kStart;
  log.Advance(kStart);
  return at_once && transport.stream();
}

TEST(LogFollow, AContainerThatWillBeRestartedIsNotOver) {
  const auto pod = [](const std::string& policy, const std::string& state) {
    return R"({"spec":{"restartPolicy":")" + policy +
           R"("},"status":{"phase":"Running","containerStatuses":[{"name":"a","state":{"running":{}}},
           {"name":"b","state":)" +
           state + "}]}}";
  };
  const std::string failed = R"({"terminated":{"exitCode":1}})",
                    well = R"({"terminated":{"exitCode":0}})";
  EXPECT_TRUE(IsOverWhen(pod("Never", failed), "b"));
  EXPECT_TRUE(IsOverWhen(pod("Never", well), "b"));
  EXPECT_FALSE(IsOverWhen(pod("Never", well), "a"));
  EXPECT_FALSE(IsOverWhen(pod("OnFailure", failed), "b"));
  EXPECT_TRUE(IsOverWhen(pod("OnFailure", well), "b"));
  EXPECT_FALSE(IsOverWhen(pod("Always", well), "b"));
  EXPECT_FALSE(IsOverWhen(pod("Never", "5"), "b"));
  EXPECT_FALSE(IsOverWhen(pod("Never", well), "c"));
  for (const char* odd :
       {"{}", "5", R"({"status":[]})", R"({"status":{"containerStatuses":{}}})"}) {
    EXPECT_FALSE(IsOverWhen(odd));
  }
}

TEST_F(LogFollowTest, AfterABreakNoLineIsTwiceOrMissing) {
  Open();
  transport.StreamSays(At("01.5", "a") + At("02.1", "b") + At("02.2", "c") + At("02.2", "d") +
                       "2026-11-15T21:50:02.2Z half of");
  Cut();
  EXPECT_TRUE(Path().ends_with("&timestamps=true&sinceTime=2026-11-15T21%3A50%3A02Z")) << Path();
  transport.StreamSays(At("02.1", "b") + At("02.2", "c") + At("02.2", "d") +
                       At("02.2", "half of it") + At("03.0", "e"));
  EXPECT_EQ(lines, (Strings{"a", "b", "c", "d", "half of it", "e"}));
  Cut();
  transport.StreamSays(At("03.0", "e") + At("03.0", "f"));
  EXPECT_EQ(lines.back(), "f");
  EXPECT_EQ(lines.size(), 7u);
}

TEST_F(LogFollowTest, KeepsTheZoneOfTheNode) {
  Open();
  transport.StreamSays("2026-11-15T21:50:01.5+02:00 a\n");
  Cut();
  EXPECT_TRUE(Path().ends_with("&sinceTime=2026-11-15T21%3A50%3A01%2B02%3A00")) << Path();
}

TEST_F(LogFollowTest, WaitsForAContainerThatHasNotStarted) {
  Open();
  for (int i = 0; i < 10; ++i) {
    // A node says the second in the moment before it has made the container.
    transport.StreamEnds(Response{
        .status = 400,
        .body = i % 2 == 0 ? R"({"message":"container \"c\" is waiting to start: x"})"
                           : R"({"message":"container \"c\" in pod \"p\" is not available"})"});
    EXPECT_FALSE(log.ended());
    EXPECT_TRUE(log.error());
    Open();
    ASSERT_TRUE(transport.stream());
  }
  EXPECT_LE(now, kStart + 2min);
  transport.StreamSays(At("01.0", "a"));
  EXPECT_FALSE(log.error());
}

TEST_F(LogFollowTest, AStartIsAskedForOftenAtFirstAndAtOnceWhenItIsKnown) {
  const auto refuse = [&] {
    transport.StreamEnds(
        Response{.status = 400, .body = R"({"message":"container \"c\" is waiting to start: x"})"});
  };
  Open();
  for (int i = 0; i < 15; ++i) {
    refuse();
    Open();
    EXPECT_EQ(now, kStart + (i + 1) * 100ms);
  }
  for (int i = 0; i < 8; ++i) {
    refuse();
    Open();
  }
  refuse();
  const Time before = now;
  log.Advance(now);
  EXPECT_EQ(log.next(), before + 10s);
  log.Hurry();
  Open();
  EXPECT_EQ(now, before);
  ASSERT_TRUE(transport.stream());
}

TEST_F(LogFollowTest, OfOnePodIsWaitedForOnceBetweenTwoRequests) {
  Advance(of_one);
  transport.StreamEnds(
      Response{.status = 400, .body = R"({"message":"container \"c\" is waiting to start: x"})"});
  Advance(of_one);
  transport.Reply(200, R"({"metadata": {"name": "p", "uid": "u1"}})");
  Advance(of_one);
  ASSERT_TRUE(transport.stream());
  EXPECT_EQ(now, kStart + 100ms);
}

TEST_F(LogFollowTest, ANodeThatHasNotHeardOfAPodYetIsAskedAgain) {
  const Response unknown{.status = 404, .body = R"({"message":"not found","reason":"NotFound"})"};
  Advance(of_one);
  transport.StreamEnds(unknown);
  Advance(of_one);
  transport.Reply(200, R"({"metadata": {"name": "p", "uid": "u1"}})");
  Advance(of_one);
  transport.StreamSays(At("00.1", "first"));
  EXPECT_EQ(lines, Strings{"first"});
  // Over, and then gone: that is all.
  transport.StreamEnds(Response{.status = 200});
  Advance(of_one);
  transport.Reply(200, R"({"metadata": {"uid": "u1"}, "status": {"phase": "Succeeded"}})");
  Advance(of_one);
  transport.StreamEnds(unknown);
  EXPECT_FALSE(of_one.ended());
  Advance(of_one);
  transport.Reply(404, "{}");
  EXPECT_TRUE(of_one.ended());
}

// 401: the API server has not read its keys yet. 403: nor who may do what, or the node has asked it
// then. 404: a node that was started again does not know yet what ran there. 400: anything else.
TEST_F(LogFollowTest, WhatComesUpMayRefuseWhatItGrantsAMomentLater) {
  const std::string over = R"({"metadata": {"uid": "u1"}, "status": {"phase": "Succeeded"}})";
  Advance(of_one);
  for (const int status : {401, 403, 404, 400, 403, 401, 400}) {
    transport.StreamEnds(Response{.status = status, .body = "{}"});
    EXPECT_FALSE(of_one.ended()) << status;
    Advance(of_one);
    transport.Reply(200, over);
    Advance(of_one);
    ASSERT_TRUE(transport.stream()) << status;
  }
  EXPECT_GT(now, kStart + 20s);
  transport.StreamSays(At("00.1", "all"));
  transport.StreamEnds(Response{.status = 200});
  EXPECT_TRUE(of_one.ended());
  EXPECT_FALSE(of_one.error());
  EXPECT_EQ(lines, Strings{"all"});
}

TEST_F(LogFollowTest, ARefusalThatLastsIsOne) {
  Advance(of_one);
  int times = 0;
  for (; !of_one.ended() && times < 100; ++times) {
    transport.StreamEnds(Response{.status = 403, .body = R"({"reason":"Forbidden"})"});
    Advance(of_one);
    if (!transport.asked.empty()) transport.Reply(200, R"({"metadata": {"uid": "u1"}})");
    Advance(of_one);
  }
  EXPECT_EQ(times, 9);
  EXPECT_EQ(of_one.error()->kind(), ErrorKind::kForbidden);
  EXPECT_GT(now, kStart + 30s);  // as long as a node remembers one
  EXPECT_LT(now, kStart + 1min);
}

TEST_F(LogFollowTest, APodThatNobodyLetsUsLookAtIsNotAskedForWithoutEnd) {
  Advance(of_one);
  transport.StreamEnds(Response{.status = 200});
  Advance(of_one);
  for (int i = 0; i < 100 && !transport.asked.empty(); ++i) {
    transport.Reply(403, R"({"reason":"Forbidden"})");
    Advance(of_one);
  }
  EXPECT_TRUE(of_one.ended());
  EXPECT_EQ(of_one.error()->kind(), ErrorKind::kForbidden);
}

TEST_F(LogFollowTest, EndsWithWhatIsRefusedForGood) {
  Open();
  transport.StreamEnds(Response{.status = 404, .body = R"({"reason":"NotFound"})"});
  EXPECT_TRUE(log.ended());
  EXPECT_EQ(log.error()->kind(), ErrorKind::kNotFound);
  log.Advance(now + 1h);
  EXPECT_FALSE(transport.stream());
}

TEST_F(LogFollowTest, ALineWithoutAStampIsTold) {
  Open();
  transport.StreamSays("unable to retrieve container logs\n\n");
  EXPECT_EQ(lines, (Strings{"unable to retrieve container logs", ""}));
}

TEST_F(LogFollowTest, AnEndlessLineComesInPieces) {
  Open();
  transport.StreamSays("2026-11-15T21:50:01.5Z ");
  const std::string piece(100'000, 'x');
  for (int i = 0; i < 50; ++i) transport.StreamSays(piece);
  transport.StreamSays("\n" + At("02.0", "next"));
  size_t total = 0;
  for (const std::string& line : lines) total += line.size();
  EXPECT_EQ(total, 5'000'004u);
  EXPECT_GT(lines.size(), 3u);
  EXPECT_EQ(lines.back(), "next");
}

TEST(LogFollow, AnAnswerAfterTheEndIsIgnored) {
  testing::FakeTransport transport;
  LogFollow(transport, {.ns = "n", .pod = "p"}, [](auto, auto) { FAIL(); }).Advance(kStart);
  EXPECT_FALSE(transport.stream());
}

// Found with a gang that was started again: the log of the new pod was told twice.
TEST_F(LogFollowTest, OfOnePodEndsWithItAndNeverTellsOfItsSuccessor) {
  Advance(of_one);
  transport.StreamSays(At("00.1", "first"));
  transport.StreamEnds(std::unexpected(Error(ErrorKind::kUnavailable, "cut")));
  Advance(of_one);
  ASSERT_EQ(transport.asked.size(), 1);
  EXPECT_EQ(transport.asked[0].request.path, "/api/v1/namespaces/n/pods/p");
  transport.Reply(200, R"({"metadata": {"name": "p", "uid": "u2"}})");
  Advance(of_one);
  EXPECT_TRUE(of_one.ended());
  EXPECT_EQ(lines, Strings{"first"});
}

}  // namespace
}  // namespace kube
