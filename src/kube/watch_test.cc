#include "kube/watch.h"

#include <set>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "io/clock.h"
#include "io/testing/clock_step.h"
#include "kube/testing.h"

namespace kube {
namespace {

using base::Duration;
using base::Error;
using base::Json;
using base::Time;
using testing::J;
using testing::kStart;
using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

// What was told, in short: "begin", "a1" (name and version), "-a2", "end 5".
struct Notes : Watch::Sink {
  void ListBegin() override { told.push_back("begin"); }
  void ListEnd(Version version) override { told.push_back(fmt::format("end {}", version)); }
  void Apply(const Json& object) override { told.push_back(NameOf(object)); }
  void Remove(const Json& object) override { told.push_back("-" + NameOf(object)); }
  void Trouble(const Error& error) override { troubles.push_back(error.text()); }

  static std::string NameOf(const Json& object) {
    return base::StringOr(object.at("metadata"), "name") + std::to_string(VersionOf(object));
  }
  Strings Take() { return std::exchange(told, {}); }

  Strings told;
  Strings troubles;
};

std::string Object(const std::string& name, Version version) {
  return fmt::format(R"({{"metadata":{{"name":"{}","resourceVersion":"{}"}}}})", name, version);
}

std::string List(Version version, const Strings& objects, const std::string& token = "") {
  std::string items;
  for (const std::string& object : objects) items += (items.empty() ? "" : ",") + object;
  return fmt::format(
      R"({{"kind":"PodList","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
      version, token, items);
}

std::string Event(const std::string& type, const std::string& object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n";
}

std::string Bookmark(Version version) {
  return Event("BOOKMARK", fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}}}})", version));
}

class WatchTest : public ::testing::Test {
 protected:
  // Lets time pass until the watch has asked for something; how long that took.
  Duration WaitForRequest() {
    const Time begin = now;
    watch.Advance(now);
    while (const auto next = watch.next()) {
      now = std::max(now, *next);
      watch.Advance(now);
    }
    return now - begin;
  }

  // Through the first list to an open stream from version 5.
  void StartWatching() {
    WaitForRequest();
    transport.Reply(200, List(5, {Object("a", 1), Object("b", 4)}));
    WaitForRequest();
    ASSERT_TRUE(transport.stream());
    notes.Take();
  }

  // The connection of whatever is under way breaks.
  void Cut() {
    if (!transport.stream()) return transport.Break();
    transport.StreamEnds(std::unexpected(Error(base::ErrorKind::kUnavailable, "cut")));
  }

  std::string AskedPath() const { return transport.asked.at(0).request.path; }
  std::string StreamPath() { return transport.stream()->request.path; }

  // It has given up the stream and asks for a list.
  void ExpectListAgain() {
    WaitForRequest();
    EXPECT_FALSE(transport.stream());
    ASSERT_EQ(transport.asked.size(), 1u);
    EXPECT_EQ(AskedPath(), "/api/v1/pods?labelSelector=a%3Db&limit=500");
    EXPECT_EQ(notes.troubles.size(), 1u);
  }

  Time now = kStart;
  testing::FakeTransport transport;
  Notes notes;
  Watch watch{transport, {.path = "/api/v1/pods", .label_selector = "a=b"}, notes, 7};
};

TEST_F(WatchTest, DoesNothingBeforeItIsAdvanced) {
  EXPECT_TRUE(transport.asked.empty());
  EXPECT_LE(watch.next().value(), kStart);
  EXPECT_FALSE(watch.synced());
}

TEST_F(WatchTest, ListsAndThenWatchesFromThatVersion) {
  EXPECT_EQ(WaitForRequest(), 0s);
  EXPECT_EQ(AskedPath(), "/api/v1/pods?labelSelector=a%3Db&limit=500");
  transport.Reply(200, List(5, {Object("a", 1), Object("b", 4)}));
  EXPECT_TRUE(watch.synced());
  EXPECT_EQ(notes.Take(), (Strings{"begin", "a1", "b4", "end 5"}));
  EXPECT_EQ(WaitForRequest(), 0s);
  EXPECT_TRUE(StreamPath().starts_with(
      "/api/v1/pods?watch=1&allowWatchBookmarks=true&labelSelector=a%3Db&resourceVersion=5&"
      "timeoutSeconds=2"))
      << StreamPath();
  EXPECT_EQ(transport.stream()->patience, 120s);
}

TEST_F(WatchTest, AnEmptyListIsAList) {
  WaitForRequest();
  transport.Reply(200, R"({"metadata":{"resourceVersion":"9"},"items":null})");
  EXPECT_EQ(notes.Take(), (Strings{"begin", "end 9"}));
  EXPECT_TRUE(watch.synced());
}

TEST_F(WatchTest, GoesThroughAllPages) {
  WaitForRequest();
  transport.Reply(200, List(5, {Object("a", 1)}, "more/1"));
  EXPECT_FALSE(watch.synced());
  EXPECT_EQ(WaitForRequest(), 0s);
  EXPECT_EQ(AskedPath(), "/api/v1/pods?labelSelector=a%3Db&limit=500&continue=more%2F1");
  transport.Reply(200, List(5, {Object("b", 2)}));
  EXPECT_EQ(notes.Take(), (Strings{"begin", "a1", "b2", "end 5"}));
}

TEST_F(WatchTest, StartsOverWhenAPageHasExpired) {
  WaitForRequest();
  transport.Reply(200, List(5, {Object("a", 1)}, "more"));
  WaitForRequest();
  transport.Reply(410, R"({"reason":"Expired"})");
  WaitForRequest();
  EXPECT_EQ(AskedPath(), "/api/v1/pods?labelSelector=a%3Db&limit=500");
  transport.Reply(200, List(6, {Object("a", 1)}));
  EXPECT_EQ(notes.Take(), (Strings{"begin", "a1", "begin", "a1", "end 6"}));
}

TEST_F(WatchTest, AsksForTheSamePageAgainAfterAnError) {
  WaitForRequest();
  transport.Reply(200, List(5, {Object("a", 1)}, "more"));
  WaitForRequest();
  transport.Reply(500, "");
  EXPECT_GT(WaitForRequest(), 0s);
  EXPECT_TRUE(AskedPath().ends_with("&continue=more"));
  EXPECT_EQ(notes.troubles, (Strings{"list /api/v1/pods: 500"}));
}

TEST_F(WatchTest, AListThatNeverEndsIsGivenUp) {
  WaitForRequest();
  transport.Reply(200, List(5, {}, "same"));
  WaitForRequest();
  transport.Reply(200, List(5, {}, "same"));
  ASSERT_EQ(notes.troubles.size(), 1u);
  int pages = 0;
  for (; notes.troubles.size() == 1 && pages < 20'000; ++pages) {
    WaitForRequest();
    transport.Reply(200, List(5, {}, "token" + std::to_string(pages)));
  }
  EXPECT_EQ(pages, 10'000);
  EXPECT_FALSE(watch.synced());
  WaitForRequest();
  EXPECT_EQ(AskedPath(), "/api/v1/pods?labelSelector=a%3Db&limit=500");
}

TEST_F(WatchTest, AsksForSmallerPagesWhenOneDoesNotArrive) {
  WaitForRequest();
  transport.Break();
  WaitForRequest();
  EXPECT_TRUE(AskedPath().ends_with("&limit=250"));
  for (int i = 0; i < 10; ++i) {
    transport.Break();
    WaitForRequest();
  }
  EXPECT_TRUE(AskedPath().ends_with("&limit=10"));
}

TEST_F(WatchTest, PassesOnWhatHappens) {
  StartWatching();
  transport.StreamSays(Event("ADDED", Object("c", 6)) + Event("MODIFIED", Object("a", 7)) +
                       Event("DELETED", Object("c", 8)));
  EXPECT_EQ(notes.Take(), (Strings{"c6", "a7", "-c8"}));
}

TEST_F(WatchTest, LinesMayComeInAnyPieces) {
  StartWatching();
  const std::string text =
      Event("ADDED", Object("c", 6)) + "\n" + Event("DELETED", Object("c", 8)) + "\r\n";
  for (const char c : text) transport.StreamSays({&c, 1});
  EXPECT_EQ(notes.Take(), (Strings{"c6", "-c8"}));
  EXPECT_TRUE(notes.troubles.empty());
}

TEST_F(WatchTest, WatchesAgainFromTheLastVersionWhenTheStreamEnds) {
  StartWatching();
  transport.StreamSays(Event("ADDED", Object("c", 6)));
  transport.StreamEnds(Response{.status = 200});
  EXPECT_LE(WaitForRequest(), 100ms);
  EXPECT_TRUE(StreamPath().contains("&resourceVersion=6&"));
  EXPECT_TRUE(notes.troubles.empty());
}

TEST_F(WatchTest, BookmarksCount) {
  StartWatching();
  transport.StreamSays(Bookmark(70));
  transport.StreamEnds(Response{.status = 200});
  WaitForRequest();
  EXPECT_TRUE(StreamPath().contains("&resourceVersion=70&"));
  EXPECT_TRUE(notes.told.empty());
}

TEST_F(WatchTest, WatchesAgainWhenTheConnectionBreaks) {
  StartWatching();
  transport.StreamSays(Event("ADDED", Object("c", 6)) + R"({"type":"ADD)");
  transport.StreamEnds(std::unexpected(Error(base::ErrorKind::kUnavailable, "cut")));
  EXPECT_LE(WaitForRequest(), 100ms);
  EXPECT_TRUE(StreamPath().contains("&resourceVersion=6&"));
  EXPECT_EQ(notes.troubles, (Strings{"watch /api/v1/pods: cut"}));
  transport.StreamSays(Event("ADDED", Object("d", 7)));  // the half line is forgotten
  EXPECT_EQ(notes.Take(), (Strings{"c6", "d7"}));
}

TEST_F(WatchTest, ListsAgainWhenTheVersionIsGone) {
  StartWatching();
  transport.StreamEnds(Response{.status = 410});
  ExpectListAgain();
}

TEST_F(WatchTest, ListsAgainAfterAnErrorEvent) {
  StartWatching();
  transport.StreamSays(
      Event("ERROR", R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})"));
  ExpectListAgain();
  EXPECT_EQ(notes.troubles[0], "watch /api/v1/pods: 410 Expired: too old");
}

TEST_F(WatchTest, ListsAgainWhenTheStreamCannotBeRead) {
  for (const std::string& bytes :
       {std::string("not json\n"),
        std::string("[]\n"),
        std::string("{}\n"),
        std::string("\0\n", 2),
        Event("ADDED", "null"),
        Event("ADDED", "[1]"),
        Event("ADDED", "{}"),
        Event("ADDED", R"({"metadata":5})"),
        Event("ADDED", R"({"metadata":{"name":"x"}})"),
        Event("ADDED", R"({"metadata":{"name":"x","resourceVersion":7}})"),
        Event("ADDED", R"({"metadata":{"name":"x","resourceVersion":"-7"}})"),
        Event("ADDED", R"({"metadata":{"resourceVersion":"7"}})"),
        Event("ADDED", R"({"metadata":{"name":[],"resourceVersion":"7"}})"),
        Event("BOOKMARK", "{}"),
        Event("SURPRISE", Object("x", 7)),
        Event("ERROR", "5"),
        Event("ERROR", R"({"code":"x"})"),
        Event("ERROR", R"({"code":200})"),
        std::string(R"({"type":"ERROR"})") + "\n",
        std::string(200, '[') + "\n"}) {
    testing::FakeTransport door;
    Notes seen;
    Watch own(door, {.path = "/api/v1/pods"}, seen, 1);
    own.Advance(kStart);
    door.Reply(200, List(5, {}));
    own.Advance(kStart);
    seen.Take();
    door.StreamSays(bytes + Event("ADDED", Object("after", 8)));
    EXPECT_TRUE(seen.told.empty()) << bytes;
    ASSERT_EQ(seen.troubles.size(), 1u) << bytes;
    own.Advance(kStart);
    own.Advance(kStart + 1s);
    EXPECT_EQ(door.asked.size(), 1u) << bytes;
    EXPECT_FALSE(door.stream());
  }
}

TEST_F(WatchTest, ListsAgainWhenALineIsTooLong) {
  StartWatching();
  const std::string piece(size_t{1} << 20, 'x');
  for (int i = 0; i < 40; ++i) transport.StreamSays(piece);
  ExpectListAgain();
  EXPECT_EQ(notes.troubles[0], "watch /api/v1/pods: an event is too large");
}

TEST_F(WatchTest, AnObjectWithoutANameDoesNotHideTheOthersOfAList) {
  WaitForRequest();
  transport.Reply(200, List(5, {"{}", "7", "null", R"({"metadata":[]})", Object("a", 1)}));
  EXPECT_EQ(notes.Take(), (Strings{"begin", "a1", "end 5"}));
  EXPECT_EQ(notes.troubles, (Strings{"list /api/v1/pods: 4 objects without a name are left out"}));
}

TEST_F(WatchTest, AnAnswerThatIsNoListIsAskedForAgain) {
  for (const char* body : {"", "x", "[]", "{}", "null", R"({"items":[]})",
                           R"({"metadata":{"resourceVersion":"0"},"items":[]})",
                           R"({"metadata":{"resourceVersion":"5"},"items":{}})",
                           R"({"metadata":{"resourceVersion":"5"},"items":"x"})"}) {
    WaitForRequest();
    transport.Reply(200, body);
    EXPECT_FALSE(watch.synced()) << body;
  }
  EXPECT_EQ(notes.troubles.size(), 9u);
  EXPECT_TRUE(notes.told.empty());
}

TEST_F(WatchTest, AnOlderListIsNotBelieved) {
  StartWatching();
  transport.StreamSays(Event("ADDED", Object("c", 60)));
  transport.StreamEnds(Response{.status = 410});
  notes.Take();
  WaitForRequest();
  transport.Reply(200, List(59, {Object("old", 2)}));
  EXPECT_TRUE(notes.told.empty());
  WaitForRequest();
  transport.Reply(200, List(60, {Object("c", 60)}));
  EXPECT_EQ(notes.Take(), (Strings{"begin", "c60", "end 60"}));
}

TEST_F(WatchTest, AnEventOutOfOrderDoesNotTurnTheVersionBack) {
  StartWatching();
  transport.StreamSays(Event("ADDED", Object("c", 9)) + Event("ADDED", Object("d", 7)));
  EXPECT_EQ(notes.Take(), (Strings{"c9", "d7"}));
  transport.StreamEnds(Response{.status = 200});
  WaitForRequest();
  EXPECT_TRUE(StreamPath().contains("&resourceVersion=9&"));
}

TEST_F(WatchTest, AVersionThatTheServerWillNotWatchFromIsLeftBehind) {
  StartWatching();
  transport.StreamSays(Bookmark(18'446'744'073'709'551'615u));
  int watches = 0;
  for (; transport.stream() && watches < 100; ++watches) {
    transport.StreamEnds(Response{.status = 504});
    WaitForRequest();
  }
  EXPECT_LE(watches, 10);
  EXPECT_EQ(transport.asked.size(), 1u);
}

TEST_F(WatchTest, PausesGrowTo30Seconds) {
  Duration last{0}, longest{0};
  WaitForRequest();
  for (int i = 0; i < 80; ++i) {
    transport.Reply(503, "");
    last = WaitForRequest();
    EXPECT_TRUE(i > 0 || last <= 100ms);
    longest = std::max(longest, last);
  }
  EXPECT_GE(last, 15s);
  EXPECT_LE(longest, 30s);
}

// The API server restarts, and then etcd, whose history of changes is gone.
TEST_F(WatchTest, HasANewListTwoSecondsAfterARestartOfTheServer) {
  StartWatching();
  const Time begin = now;
  Cut();
  while (now < begin + 20s) {
    WaitForRequest();
    Cut();
  }
  Duration waited = WaitForRequest();
  transport.Reply(200, List(6, {}));  // the server's version
  waited += WaitForRequest();
  transport.StreamEnds(Response{.status = 410});
  waited += WaitForRequest();
  EXPECT_EQ(transport.asked.size(), 1u) << "a list";
  EXPECT_LE(waited, 2s);
}

TEST_F(WatchTest, RetryAfterIsHonouredWithinReason) {
  WaitForRequest();
  transport.Reply(429, "", 7s);
  EXPECT_EQ(WaitForRequest(), 7s);
  transport.Reply(429, "", 24h);
  EXPECT_EQ(WaitForRequest(), 5min);
}

TEST_F(WatchTest, AStepOfTheWallClockDoesNotMakeItWaitLonger) {
  for (const Duration step : io::testing::kClockSteps) {
    testing::FakeTransport refusing;
    Watch stepped_watch{refusing, {.path = "/api/v1/pods"}, notes, 1};
    stepped_watch.Advance(io::Now());
    refusing.Reply(429, "", 30s);
    stepped_watch.Advance(io::Now());
    const io::testing::ClockStep stepped(step);
    stepped_watch.Advance(io::Now());
    EXPECT_TRUE(refusing.asked.empty()) << step.count();
    EXPECT_LE(stepped_watch.next().value_or(Time::max()), io::Now() + 30s) << step.count();
  }
}

// As after a restore of the cluster: the server does not have the version that we watch from, and
// says nothing until it gets there.
TEST_F(WatchTest, AStreamThatStaysSilentForTooLongIsFollowedByAList) {
  StartWatching();
  now += 120s;
  transport.StreamEnds(std::unexpected(Error(base::ErrorKind::kUnavailable, "nothing came")));
  WaitForRequest();
  ASSERT_EQ(transport.asked.size(), 1u);
  transport.Reply(200, List(5, {Object("a", 1), Object("b", 4)}));
  WaitForRequest();
  EXPECT_TRUE(transport.stream()) << "all is well";
}

TEST_F(WatchTest, AStreamThatIsCutSoonIsTakenUpAgainWithoutAList) {
  StartWatching();
  transport.StreamEnds(std::unexpected(Error(base::ErrorKind::kUnavailable, "cut")));
  WaitForRequest();
  EXPECT_TRUE(transport.stream());
  EXPECT_TRUE(transport.asked.empty());
}

TEST_F(WatchTest, AServerThatInsistsOnAnEarlierVersionWasRestored) {
  StartWatching();
  transport.StreamEnds(Response{.status = 410});
  const Time begin = now;
  while (!watch.rolled_back()) {
    ASSERT_LT(now, begin + 3min);
    WaitForRequest();
    ASSERT_EQ(transport.asked.size(), 1u);
    transport.Reply(200, List(3, {Object("a", 1)}));
    watch.Advance(now);
  }
  EXPECT_GE(now, begin + 30s);
  EXPECT_TRUE(watch.behind());
  EXPECT_TRUE(notes.Take().empty()) << "what it lists is not taken for news";
}

// A watch from a version that the restored server does not have yet stays silent until the server
// reaches it, and never reports what was lost.
TEST_F(WatchTest, AfterTwoFailuresItRequestsTheServersVersionBeforeAWatch) {
  StartWatching();
  Cut();
  WaitForRequest();
  Cut();
  WaitForRequest();
  ASSERT_EQ(transport.asked.size(), 1u);
  EXPECT_NE(transport.asked.front().request.path.find("limit=1"), std::string::npos);
  transport.Reply(200, List(3, {Object("a", 1)}));
  watch.Advance(now);
  EXPECT_TRUE(watch.behind());
  EXPECT_FALSE(watch.synced());
  WaitForRequest();
  transport.Reply(200, List(6, {Object("a", 6)}));
  WaitForRequest();
  EXPECT_FALSE(watch.behind());
  EXPECT_TRUE(transport.stream());
}

TEST_F(WatchTest, AServerThatWasBehindForAMomentWasNotRestored) {
  StartWatching();
  for (int i = 0; i < 3; ++i) {
    transport.StreamEnds(Response{.status = 410});
    WaitForRequest();
    transport.Reply(200, List(3, {}));
    WaitForRequest();
    now += 20s;
    transport.Reply(200, List(6, {}));
    WaitForRequest();
  }
  EXPECT_FALSE(watch.rolled_back());
}

TEST_F(WatchTest, AServerThatBreaksEveryWatchIsNotAskedForListsWithoutEnd) {
  StartWatching();
  int lists = 0;
  const Time begin = now;
  while (now < begin + 1h) {
    transport.StreamEnds(Response{.status = 410});
    WaitForRequest();
    ++lists;
    transport.Reply(200, List(5, {}));
    WaitForRequest();
  }
  EXPECT_LT(lists, 300);
}

TEST_F(WatchTest, AServerThatEndsEveryStreamAtOnceIsNotAskedWithoutPause) {
  StartWatching();
  int watches = 0;
  const Time begin = now;
  while (now < begin + 1h) {
    transport.StreamEnds(Response{.status = 200});
    WaitForRequest();
    ++watches;
  }
  EXPECT_LT(watches, 300);
}

TEST_F(WatchTest, NewsEndTheRowOfFailures) {
  StartWatching();
  for (int i = 0; i < 7; ++i) {
    transport.StreamEnds(Response{.status = 503});
    WaitForRequest();
  }
  transport.StreamSays(Bookmark(9));
  transport.StreamEnds(Response{.status = 503});
  EXPECT_LE(WaitForRequest(), 100ms);
}

TEST_F(WatchTest, ListsAtOnceWhenItMayBeBehind) {
  StartWatching();
  watch.ListAgain();
  EXPECT_FALSE(watch.synced());
  EXPECT_FALSE(transport.stream());
  EXPECT_EQ(WaitForRequest(), 0s);
  transport.Reply(200, List(9, {Object("b", 8)}));
  EXPECT_TRUE(watch.synced());
  EXPECT_EQ(notes.Take(), (Strings{"begin", "b8", "end 9"}));
  WaitForRequest();
  EXPECT_TRUE(transport.stream());
}

TEST_F(WatchTest, AListThatWasBegunTooEarlyIsFollowedByAnother) {
  WaitForRequest();
  watch.ListAgain();
  transport.Reply(200, List(5, {Object("a", 1)}, "more"));
  WaitForRequest();
  transport.Reply(200, List(5, {Object("b", 4)}));
  EXPECT_FALSE(watch.synced());
  EXPECT_EQ(WaitForRequest(), 0s);
  transport.Reply(200, List(9, {Object("b", 8)}));
  EXPECT_TRUE(watch.synced());
  EXPECT_EQ(notes.Take(), (Strings{"begin", "a1", "b4", "end 5", "begin", "b8", "end 9"}));
}

TEST_F(WatchTest, APauseAfterFailuresDoesNotHoldUpAListThatIsWished) {
  StartWatching();
  for (int i = 0; i < 6; ++i) {
    Cut();
    WaitForRequest();
  }
  Cut();
  watch.Advance(now);
  EXPECT_GT(watch.next(), now + 400ms);
  watch.ListAgain();
  EXPECT_EQ(WaitForRequest(), 0s);
  EXPECT_EQ(transport.asked.size(), 1u);
}

TEST(Watch, AnAnswerAfterItsEndIsIgnored) {
  testing::FakeTransport transport;
  Notes notes;
  {
    Watch watch(transport, {.path = "/api/v1/pods"}, notes, 1);
    watch.Advance(kStart);
  }
  transport.Reply(200, List(5, {}));
  EXPECT_TRUE(notes.told.empty());
}

TEST(Watch, ItsEndClosesTheStream) {
  testing::FakeTransport transport;
  Notes notes;
  {
    Watch watch(transport, {.path = "/api/v1/pods"}, notes, 1);
    watch.Advance(kStart);
    transport.Reply(200, List(5, {}));
    watch.Advance(kStart);
    EXPECT_TRUE(transport.stream());
  }
  EXPECT_FALSE(transport.stream());
}

TEST(Watch, StreamsOfSeveralWatchesEndAtDifferentTimes) {
  std::set<std::string> paths;
  for (uint64_t jitter = 0; jitter < 20; ++jitter) {
    testing::FakeTransport transport;
    Notes notes;
    Watch watch(transport, {.path = "/api/v1/pods"}, notes, jitter);
    watch.Advance(kStart);
    transport.Reply(200, List(5, {}));
    watch.Advance(kStart);
    paths.insert(transport.stream()->request.path);
  }
  EXPECT_GT(paths.size(), 10u);
}

}  // namespace
}  // namespace kube
