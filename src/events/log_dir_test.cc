#include "events/log_dir.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events/event_writer.h"

namespace events {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirst = "events.out.tfevents.1700000000.host.1.0.v2";
constexpr const char* kSecond = "events.out.tfevents.1700000100.host.2.0.v2";

// The clock by which the files of the test are dated.
base::Time Now() {
  return std::chrono::time_point_cast<base::Duration>(std::chrono::system_clock::now());
}

// A log directory that exists while the test does.
class LogDirTest : public ::testing::Test {
 protected:
  LogDirTest() {
    std::string name = ::testing::TempDir() + "/events_XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~LogDirTest() override { fs::remove_all(root_); }

  fs::path Path(const std::string& run, const std::string& name) { return root_ / run / name; }
  void Write(const fs::path& path, const std::string& bytes) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  void Append(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
  }

  fs::path root_;
};

std::string Loss(int64_t step, float value) {
  return Record(EventOf(step, 1.7e9, ScalarTf2("loss", value)));
}

std::vector<std::pair<int64_t, double>> CurveOf(const LogDirReader& reader, std::string_view run,
                                                std::string_view tag = "loss") {
  std::vector<std::pair<int64_t, double>> curve;
  const Series* series = reader.Find(run, tag);
  if (!series) return curve;
  for (const Point& point : series->Points()) curve.emplace_back(point.step, point.value);
  return curve;
}

using Curve = std::vector<std::pair<int64_t, double>>;

TEST_F(LogDirTest, NamesRunsByTheirDirectories) {
  Write(Path(".", kFirst), Record(FileVersion()) + Loss(1, 0.5f));
  Write(Path("train", kFirst), Loss(1, 0.25f));
  Write(Path("tune/trial-3/validation", kFirst), Loss(1, 0.125f));
  Write(Path("train", "checkpoint"), "no event file");
  LogDirReader reader(root_);
  EXPECT_EQ(reader.Poll(Now()).scalars, 3);
  EXPECT_EQ(CurveOf(reader, "."), (Curve{{1, 0.5}}));
  EXPECT_EQ(CurveOf(reader, "train"), (Curve{{1, 0.25}}));
  EXPECT_EQ(CurveOf(reader, "tune/trial-3/validation"), (Curve{{1, 0.125}}));
  EXPECT_EQ(reader.runs().size(), 3u);
  EXPECT_EQ(reader.counts().files, 3);
  EXPECT_EQ(reader.counts().records, 4);
}

TEST_F(LogDirTest, ReadsAtEachPollWhatIsNew) {
  const fs::path file = Path("train", kFirst);
  LogDirReader reader(root_);
  EXPECT_EQ(reader.Poll(Now()).scalars, 0);
  Write(file, Loss(1, 0.5f));
  EXPECT_EQ(reader.Poll(Now()).scalars, 1);
  EXPECT_EQ(reader.Poll(Now()).scalars, 0);
  Append(file, Loss(2, 0.25f) + Loss(3, 0.125f).substr(0, 20));
  EXPECT_EQ(reader.Poll(Now()).scalars, 1);
  Append(file, Loss(3, 0.125f).substr(20));
  EXPECT_EQ(reader.Poll(Now()).scalars, 1);
  EXPECT_EQ(CurveOf(reader, "train"), (Curve{{1, 0.5}, {2, 0.25}, {3, 0.125}}));
  EXPECT_EQ(reader.counts().bytes, static_cast<int64_t>(fs::file_size(file)));
}

TEST_F(LogDirTest, FindsFilesAndRunsThatAppearLater) {
  Write(Path("train", kFirst), Loss(1, 0.5f));
  LogDirReader reader(root_);
  reader.Poll(Now());
  Write(Path("validation", kFirst), Loss(1, 0.25f));
  reader.Poll(Now());
  Write(Path("train", kSecond), Loss(2, 0.125f));
  reader.Poll(Now());
  EXPECT_EQ(CurveOf(reader, "validation"), (Curve{{1, 0.25}}));
  EXPECT_EQ(CurveOf(reader, "train"), (Curve{{1, 0.5}, {2, 0.125}}));
}

TEST_F(LogDirTest, ListsADirectoryAgainWhenItsTimeChangedOrAtTheLatestAfterAWhile) {
  Write(Path("train", kFirst), Loss(1, 1));
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(root_ / "train", old);
  LogDirReader reader(root_);
  reader.Poll(Now());
  const base::Time begin = Now() + 2 * LogTree::kSettled;
  reader.Poll(begin);
  Write(Path("train", kSecond), Loss(2, 2));
  fs::last_write_time(root_ / "train", old);  // as on a file system that does not tell
  EXPECT_EQ(reader.Poll(begin + std::chrono::seconds(1)).scalars, 0);
  EXPECT_EQ(reader.Poll(begin + LogTree::kRenew).scalars, 1);
}

// As after a step of the clock: the directory looks old, and changes once more within the same tick
// of the file system's clock.
TEST_F(LogDirTest, BelievesAListingByItsOwnClockWhateverTheFileSystemSays) {
  Write(Path("train", kFirst), Loss(1, 1));
  for (const auto off : {std::chrono::hours(-1), std::chrono::hours(1)}) {
    const auto time = fs::file_time_type::clock::now() + off;
    fs::last_write_time(root_ / "train", time);
    fs::remove(root_ / "train" / kSecond);
    LogDirReader reader(root_);
    const base::Time begin = Now();
    reader.Poll(begin);
    Write(Path("train", kSecond), Loss(2, 2));
    fs::last_write_time(root_ / "train", time);
    EXPECT_EQ(reader.Poll(begin + std::chrono::milliseconds(10)).scalars, 1);
  }
}

TEST_F(LogDirTest, LetsTheFileOfARestartedJobTakeItsStepsBack) {
  Write(Path("train", kFirst), Loss(1, 1) + Loss(2, 2) + Loss(3, 3) + Loss(4, 4));
  LogDirReader reader(root_);
  reader.Poll(Now());
  Write(Path("train", kSecond), Loss(3, 33));
  reader.Poll(Now());
  EXPECT_EQ(CurveOf(reader, "train"), (Curve{{1, 1}, {2, 2}, {3, 33}}));
  Append(Path("train", kFirst), Loss(5, 5));  // the old attempt, not quite dead
  reader.Poll(Now());
  EXPECT_EQ(CurveOf(reader, "train"), (Curve{{1, 1}, {2, 2}, {3, 33}}));
  EXPECT_EQ(reader.counts().superseded_scalars, 1);
}

TEST_F(LogDirTest, TellsTheSameCurveWhetherFollowedOrReadAtTheEnd) {
  LogDirReader follower(root_);
  Write(Path("train", kFirst), Loss(1, 1) + Loss(2, 2) + Loss(3, 3));
  follower.Poll(Now());
  Write(Path("train", kSecond), Loss(2, 22));
  follower.Poll(Now());
  Append(Path("train", kSecond), Loss(3, 33));
  follower.Poll(Now());
  LogDirReader late(root_);
  late.Poll(Now());
  EXPECT_EQ(CurveOf(follower, "train"), CurveOf(late, "train"));
}

TEST_F(LogDirTest, SurvivesACorruptRecordAndSaysSoOnce) {
  std::string bad = Loss(2, 2);
  bad[30] ^= 1;
  Write(Path("train", kFirst), Loss(1, 1) + bad + Loss(3, 3));
  LogDirReader reader(root_);
  reader.Poll(Now());
  EXPECT_EQ(CurveOf(reader, "train"), (Curve{{1, 1}, {3, 3}}));
  EXPECT_EQ(reader.counts().corrupt_records, 1);
  EXPECT_EQ(reader.TakeProblems().size(), 1u);
  Append(Path("train", kFirst), bad);
  reader.Poll(Now());
  EXPECT_EQ(reader.counts().corrupt_records, 2);
  EXPECT_TRUE(reader.TakeProblems().empty());
}

TEST_F(LogDirTest, StopsAFileAtABadLengthAndGoesOnWithTheOthers) {
  Write(Path("a", kFirst), Loss(1, 1) + std::string(64, '\0') + Loss(2, 2));
  Write(Path("b", kFirst), Loss(1, 1));
  LogDirReader reader(root_);
  reader.Poll(Now());
  Append(Path("a", kFirst), Loss(3, 3));
  Append(Path("b", kFirst), Loss(2, 2));
  reader.Poll(Now());
  EXPECT_EQ(CurveOf(reader, "a"), (Curve{{1, 1}}));
  EXPECT_EQ(CurveOf(reader, "b"), (Curve{{1, 1}, {2, 2}}));
  EXPECT_EQ(reader.counts().corrupt_records, 1);
  EXPECT_EQ(reader.TakeProblems().size(), 1u);
}

TEST_F(LogDirTest, GoesOnWithAFileWhoseTailWasZerosOnlyForAWhile) {
  const fs::path file = Path("train", kFirst);
  Write(file, Loss(1, 1) + std::string(64, '\0'));
  LogDirReader reader(root_);
  reader.Poll(Now());
  Write(file, Loss(1, 1) + Loss(2, 2));  // the same inode, and not shorter than what was read
  reader.Poll(Now());
  EXPECT_EQ(CurveOf(reader, "train"), (Curve{{1, 1}, {2, 2}}));
}

TEST_F(LogDirTest, ReadsAFileThatWasTruncatedOrReplacedFromItsBeginning) {
  const fs::path file = Path("train", kFirst);
  Write(file, Loss(1, 1) + Loss(2, 2) + Loss(3, 3));
  LogDirReader reader(root_);
  reader.Poll(Now());
  Write(file, Loss(2, 22));
  reader.Poll(Now());
  EXPECT_EQ(CurveOf(reader, "train"), (Curve{{1, 1}, {2, 22}}));
  Write(Path("train", "new"), Loss(2, 222) + Loss(3, 333) + Loss(4, 4));
  fs::rename(Path("train", "new"), file);
  reader.Poll(Now());
  EXPECT_EQ(CurveOf(reader, "train"), (Curve{{1, 1}, {2, 222}, {3, 333}, {4, 4}}));
  EXPECT_EQ(reader.counts().replaced_files, 2);
}

TEST_F(LogDirTest, EndsInALoopOfLinks) {
  Write(Path("train", kFirst), Loss(1, 1));
  fs::create_directory_symlink(root_, root_ / "train" / "again");
  fs::create_symlink(root_ / "nowhere", root_ / "train" / "events.out.tfevents.dangling");
  LogDirReader reader(root_);
  EXPECT_EQ(reader.Poll(Now()).scalars, 1);
}

TEST_F(LogDirTest, FollowsALinkToARunElsewhere) {
  Write(Path("store/attempt-2", kFirst), Loss(1, 1));
  fs::create_directory(root_ / "logs");
  fs::create_directory_symlink(root_ / "store/attempt-2", root_ / "logs/train");
  LogDirReader reader(root_ / "logs");
  reader.Poll(Now());
  EXPECT_EQ(CurveOf(reader, "train"), (Curve{{1, 1}}));
}

TEST_F(LogDirTest, DoesNotDescendWithoutEnd) {
  std::string deep = "d";
  for (int depth = 1; depth < LogTree::kMaxDepth; ++depth) deep += "/d";
  Write(Path(deep, kFirst), Loss(1, 1));
  Write(Path(deep + "/d", kFirst), Loss(1, 1));
  LogDirReader reader(root_);
  EXPECT_EQ(reader.Poll(Now()).scalars, 1);
}

TEST_F(LogDirTest, ReportsAFileItMayNotReadOnceAndReadsItWhenItMay) {
  const fs::path file = Path("train", kFirst);
  Write(file, Loss(1, 1));
  fs::permissions(file, fs::perms::none);
  fs::permissions(root_, fs::perms::all);
  const uid_t user = geteuid();
  ASSERT_EQ(seteuid(user == 0 ? 65534 : user), 0);  // root may read everything
  LogDirReader reader(root_);
  reader.Poll(Now());
  reader.Poll(Now());
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_EQ(reader.TakeProblems(), std::vector{file.string() + ": Permission denied"});
  EXPECT_EQ(reader.counts().failed_reads, 2);
  fs::permissions(file, fs::perms::owner_read);
  EXPECT_EQ(reader.Poll(Now()).scalars, 1);
}

TEST_F(LogDirTest, DoesNotBlockOnAFifoThatLooksLikeAnEventFile) {
  fs::create_directories(root_ / "train");
  ASSERT_EQ(mkfifo(Path("train", kFirst).c_str(), 0600), 0);
  LogDirReader reader(root_);
  EXPECT_EQ(reader.Poll(Now()).scalars, 0);
}

TEST_F(LogDirTest, StopsAtTheBytesItIsAllowedAndReadsOnNextTime) {
  std::string bytes;
  for (int step = 0; step < 100; ++step) bytes += Loss(step, 1);
  Write(Path("a", kFirst), bytes);
  Write(Path("b", kFirst), bytes);
  LogDirReader reader(root_);
  int polls = 1;
  for (; reader.Poll(Now(), bytes.size() / 4).more; ++polls) ASSERT_LT(polls, 20);
  EXPECT_GE(polls, 8);
  EXPECT_EQ(reader.counts().scalars, 200);
}

TEST_F(LogDirTest, KeepsNoTagOfAbsurdLength) {
  const std::string tag(LogDirReader::kMaxTagBytes + 1, 't');
  Write(Path("train", kFirst), Record(EventOf(1, 1, ScalarTf1(tag, 1))));
  LogDirReader reader(root_);
  reader.Poll(Now());
  EXPECT_EQ(reader.counts().dropped_scalars, 1);
}

TEST_F(LogDirTest, NeverTellsAWrongValueWhicheverBitOfAFileIsTurned) {
  const std::string whole = Record(FileVersion()) + Loss(1, 1) + Loss(2, 2);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    Write(Path("train", kFirst), bytes);
    LogDirReader reader(root_);
    reader.Poll(Now());
    ASSERT_EQ(reader.counts().corrupt_records, 1) << bit;
    for (const auto& [step, value] : CurveOf(reader, "train")) ASSERT_EQ(value, step) << bit;
  }
}

// Written by TensorFlow 2.15.1: tf.compat.v1.summary.FileWriter with a graph, a session that
// starts again at step 300, and histograms between the scalars.
TEST(RealEventFiles, OfTf1AreReadExactly) {
  LogDirReader reader(TESTDATA "/events");
  reader.Poll(Now());
  EXPECT_EQ(CurveOf(reader, "tf1", "loss"),
            (Curve{{0, 1.0}, {100, 0.5}, {200, 1.0f / 3}, {300, 0.125}}));
  EXPECT_EQ(CurveOf(reader, "tf1", "accuracy"), (Curve{{0, 0.0}, {100, 0.5}, {200, 1 - 1.0f / 3}}));
  EXPECT_EQ(reader.runs().at("tf1").size(), 2u);
}

// Written by TensorFlow 2.21.0: tf.summary.scalar of several types, a histogram and a text.
TEST(RealEventFiles, OfTf2AreReadExactly) {
  LogDirReader reader(TESTDATA "/events");
  reader.Poll(Now());
  EXPECT_EQ(CurveOf(reader, "tf2", "epoch_loss"),
            (Curve{{0, 1.0}, {1, 0.5}, {2, 1.0f / 3}, {3, 0.25}, {4, 0.2f}}));
  EXPECT_EQ(CurveOf(reader, "tf2", "epoch_accuracy"),
            (Curve{{0, 0.5}, {1, 0.5625}, {2, 0.625}, {3, 0.6875}, {4, 0.75}}));
  EXPECT_EQ(CurveOf(reader, "tf2", "half"), (Curve{{7, 0.25}}));
  EXPECT_EQ(CurveOf(reader, "tf2", "count"), (Curve{{9, 42}}));
  EXPECT_EQ(reader.runs().at("tf2").size(), 4u);
  EXPECT_EQ(reader.TakeProblems(), std::vector<std::string>());
}

}  // namespace
}  // namespace events
