#include "cli/log_tail.h"

#include <gtest/gtest.h>

#include "io/testing/temp_dir.h"

namespace cli {
namespace {

class LogTailTest : public ::testing::Test {
 protected:
  int64_t Offset(const std::string& log, int64_t lines) {
    return OffsetOfLastLines(dir_.Write("worker-0.log", log), lines);
  }
  io::testing::TempDir dir_;
};

TEST_F(LogTailTest, TheLastLinesAreFoundFromTheEnd) {
  EXPECT_EQ(Offset("", 2), 0);
  EXPECT_EQ(Offset("one\n", 2), 0);
  EXPECT_EQ(Offset("one\ntwo\n", 2), 0);
  EXPECT_EQ(Offset("one\ntwo\nthree\n", 2), 4);
  EXPECT_EQ(Offset("one\ntwo\nunfinished", 2), 4);
  EXPECT_EQ(Offset("one\n\n\n", 1), 5);
  EXPECT_EQ(OffsetOfLastLines(dir_.path() + "/none", 2), 0);
}

TEST_F(LogTailTest, LinesLongerThanABlockAreFound) {
  const std::string line(200'000, 'x');
  EXPECT_EQ(Offset(line + "\n" + line + "\n" + line + "\n", 2), 200'001);
  EXPECT_EQ(Offset(line + "\n" + line + "\n" + line + "\n", 3), 0);
}

TEST_F(LogTailTest, TheNotesOfADayAreReadFromTheirEnd) {
  dir_.Write("worker-0.log", std::string(100'000, 'x'));
  std::string notes;
  for (int i = 1; i <= 100'000; ++i)
    notes += std::to_string(i) + " " + std::to_string(1000 + i) + "\n";
  dir_.Write("worker-0.times", notes);
  const auto at = [](int64_t micros) { return base::Time(base::Duration(micros)); };
  EXPECT_EQ(OffsetAt(dir_.path() + "/worker-0.log", at(0)), 0);
  EXPECT_EQ(OffsetAt(dir_.path() + "/worker-0.log", at(1001)), 0);
  EXPECT_EQ(OffsetAt(dir_.path() + "/worker-0.log", at(51'000)), 49'999);
  EXPECT_EQ(OffsetAt(dir_.path() + "/worker-0.log", at(101'000)), 99'999);
  EXPECT_EQ(OffsetAt(dir_.path() + "/worker-0.log", at(1'000'000)), 100'000);
}

}  // namespace
}  // namespace cli
