#include "cli/log_view.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

using namespace std::chrono_literals;
using api::ReplicaId;
using api::Role;

const ReplicaId kWorker0{Role::kWorker, 0}, kWorker1{Role::kWorker, 1}, kPs0{Role::kPs, 0};
const base::Time kNow{1'700'000'000s};

std::vector<std::string> Shown(const std::vector<LogLine>& lines) {
  std::vector<std::string> out;
  for (const LogLine& line : lines) out.push_back(Prefixed(line, 0, false));
  return out;
}

using Lines = std::vector<std::string>;

TEST(LogView, ShowsWholeLinesOnly) {
  LogView view(false);
  view.Feed(kWorker0, "one\ntw", kNow);
  EXPECT_EQ(Shown(view.Take(kNow + 1s)), (Lines{"worker/0  one"}));
  view.Feed(kWorker0, "o\n", kNow + 1s);
  EXPECT_EQ(Shown(view.Take(kNow + 2s)), (Lines{"worker/0  two"}));
}

TEST(LogView, SaysOnceWhatReplicasOfARoleSayTogether) {
  LogView view(false);
  view.Feed(kWorker0, "Epoch 1/2\nmine\n", kNow);
  view.Feed(kPs0, "Epoch 1/2\n", kNow + 10ms);
  view.Feed(kWorker1, "Epoch 1/2\n", kNow + 100ms);
  EXPECT_EQ(Shown(view.Take(kNow + 1s)),
            (Lines{"worker/* x2  Epoch 1/2", "worker/0  mine", "ps/0  Epoch 1/2"}));
}

TEST(LogView, WaitsForNobodyWhoIsNotExpected) {
  LogView view(false);
  view.Expect({kWorker0, kWorker1, kPs0});
  view.Feed(kPs0, "ready\n", kNow);
  EXPECT_EQ(view.look_again(), kNow);
  EXPECT_EQ(Shown(view.Take(kNow)), (Lines{"ps/0  ready"}));
  view.Feed(kWorker0, "Epoch 1/2\n", kNow);
  EXPECT_TRUE(view.Take(kNow).empty());
  view.Feed(kWorker1, "Epoch 1/2\n", kNow + 10ms);
  EXPECT_EQ(Shown(view.Take(kNow + 10ms)), (Lines{"worker/* x2  Epoch 1/2"}));
}

TEST(LogView, DoesNotFoldWhatOneReplicaRepeats) {
  LogView view(false);
  view.Feed(kWorker0, "again\nagain\n", kNow);
  view.Feed(kWorker1, "again\n", kNow);
  EXPECT_EQ(Shown(view.TakeAll()), (Lines{"worker/0  again", "worker/* x2  again"}));
}

TEST(LogView, DoesNotFoldWhatWasSaidMuchLater) {
  LogView view(false);
  view.Feed(kWorker0, "hello\n", kNow);
  view.Feed(kWorker1, "hello\n", kNow + 5s);
  EXPECT_EQ(Shown(view.TakeAll()), (Lines{"worker/0  hello", "worker/1  hello"}));
}

constexpr std::string_view kTraceback =
    "Traceback (most recent call last):\n"
    "  File \"a.py\", line 1, in <module>\n"
    "    f()\n"
    "ValueError: bad\n";

TEST(LogView, NeverInterleavesTracebacks) {
  LogView view(false);
  for (size_t i = 0; i < kTraceback.size(); ++i) {
    view.Feed(kWorker0, kTraceback.substr(i, 1), kNow);
    view.Feed(kWorker1, kTraceback.substr(i, 1), kNow);
  }
  const Lines lines = Shown(view.TakeAll());
  ASSERT_EQ(lines.size(), 8u);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_TRUE(lines[i].starts_with(i < 4 ? "worker/0" : "worker/1")) << lines[i];
}

TEST(LogView, HoldsATracebackAtMostASecond) {
  LogView view(false);
  view.Feed(kWorker0, "Traceback (most recent call last):\n  File \"a.py\", line 1\n", kNow);
  EXPECT_TRUE(view.Take(kNow + 500ms).empty());
  EXPECT_EQ(view.look_again(), kNow + 1s);
  view.Take(kNow + 1s);
  EXPECT_EQ(view.Take(kNow + 2s).size(), 2u);
}

TEST(LogView, LeavesProgressBarsToTheBlock) {
  LogView view(false);
  view.Feed(kWorker0, "Epoch 1/2\n  1/468 [..............................] - ETA: 3s - loss: 2.3\n",
            kNow);
  EXPECT_EQ(Shown(view.TakeAll()), (Lines{"worker/0  Epoch 1/2"}));
  ASSERT_NE(view.progress(kWorker0), nullptr);
  EXPECT_EQ(view.progress(kWorker0)->At(kNow).step, 1);
}

TEST(LogView, RawMeansAsItWasPrinted) {
  LogView view(true);
  view.Feed(kWorker0, "a\rb\n\n", kNow);
  EXPECT_EQ(Shown(view.Take(kNow)), (Lines{"worker/0  a\rb", "worker/0  "}));
}

TEST(LogView, ALineThatNeverEndsDoesNotGrowForEver) {
  LogView view(false);
  for (int i = 0; i < 1000; ++i) view.Feed(kWorker0, std::string(1000, 'x'), kNow);
  EXPECT_LE(view.TakeAll().at(0).text.size(), 64u << 10);
}

TEST(PrefixWidth, FitsFoldedPrefixesToo) {
  EXPECT_EQ(PrefixWidth({kWorker0}), 8u);
  EXPECT_EQ(PrefixWidth({kWorker0, kWorker1}), 11u);  // "worker/* x2"
}

}  // namespace
}  // namespace cli
