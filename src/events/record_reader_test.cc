#include "events/record_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "events/event_writer.h"

namespace events {
namespace {

using Found = RecordReader::Found;

// A file that exists while the test does.
class File {
 public:
  explicit File(const std::string& content = "") : file_(std::tmpfile()) { Append(content); }
  ~File() { std::fclose(file_); }
  File(const File&) = delete;

  void Append(const std::string& content) {
    ASSERT_EQ(pwrite(fd(), content.data(), content.size(), static_cast<off_t>(size_)),
              static_cast<ssize_t>(content.size()));
    size_ += content.size();
  }
  void Extend(uint64_t size) { ASSERT_EQ(ftruncate(fd(), static_cast<off_t>(size_ = size)), 0); }
  int fd() const { return fileno(file_); }
  uint64_t size() const { return size_; }

 private:
  std::FILE* file_;
  uint64_t size_ = 0;
};

struct Pass {
  std::vector<std::string> records;
  int skipped = 0;
  Found end = Found::kNoMore;
  uint64_t offset = 0;
};

Pass ReadFrom(uint64_t offset, const File& file, RecordReader* reader) {
  Pass pass;
  reader->Start(file.fd(), offset, file.size());
  while (true) {
    pass.end = reader->Next();
    if (pass.end == Found::kRecord) {
      pass.records.emplace_back(reader->record());
    } else if (pass.end == Found::kBadData || pass.end == Found::kTooLarge) {
      ++pass.skipped;
    } else {
      pass.offset = reader->offset();
      return pass;
    }
  }
}

Pass ReadAll(const File& file) {
  RecordReader reader;
  return ReadFrom(0, file, &reader);
}

const std::vector<std::string> kThree = {"one", "", std::string(300, 'x')};
std::string Three() { return Record(kThree[0]) + Record(kThree[1]) + Record(kThree[2]); }

TEST(RecordReader, GivesTheRecordsInOrder) {
  const File file(Three());
  const Pass pass = ReadAll(file);
  EXPECT_EQ(pass.records, kThree);
  EXPECT_EQ(pass.end, Found::kNoMore);
  EXPECT_EQ(pass.offset, file.size());
}

TEST(RecordReader, ReadsOnWhereverTheWriterPaused) {
  const std::string whole = Three();
  for (size_t pause = 0; pause <= whole.size(); ++pause) {
    File file(whole.substr(0, pause));
    RecordReader reader;
    const Pass first = ReadFrom(0, file, &reader);
    ASSERT_EQ(first.end, Found::kNoMore) << pause;
    file.Append(whole.substr(pause));
    const Pass second = ReadFrom(first.offset, file, &reader);
    std::vector<std::string> records = first.records;
    records.insert(records.end(), second.records.begin(), second.records.end());
    ASSERT_EQ(records, kThree) << pause;
    ASSERT_EQ(second.offset, whole.size());
  }
}

TEST(RecordReader, LosesOneRecordToABadDataChecksum) {
  std::string bytes = Three();
  bytes[12] ^= 1;  // the 'o' of "one"
  const Pass pass = ReadAll(File(bytes));
  EXPECT_EQ(pass.records, (std::vector<std::string>{kThree[1], kThree[2]}));
  EXPECT_EQ(pass.skipped, 1);
}

TEST(RecordReader, StopsAtABadLengthAndStaysBeforeIt) {
  std::string bytes = Three();
  const size_t second = Record(kThree[0]).size();
  bytes[second] ^= 1;
  const Pass pass = ReadAll(File(bytes));
  EXPECT_EQ(pass.records, std::vector<std::string>{kThree[0]});
  EXPECT_EQ(pass.end, Found::kBadLength);
  EXPECT_EQ(pass.offset, second);
}

TEST(RecordReader, NeverGivesARecordInWhichABitWasTurned) {
  const std::string whole = Three();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const Pass pass = ReadAll(File(bytes));
    ASSERT_TRUE(pass.skipped == 1 || pass.end == Found::kBadLength) << bit;
    for (const std::string& record : pass.records) {
      ASSERT_TRUE(std::ranges::count(kThree, record)) << bit;
    }
  }
}

TEST(RecordReader, GrowsForARecordBeyondItsBufferAndShrinksAgain) {
  const std::string large(5 << 20, 'g');
  const File file(Record("before") + Record(large) + Record("after"));
  RecordReader reader;
  for (int round = 0; round < 2; ++round) {
    const Pass pass = ReadFrom(0, file, &reader);
    EXPECT_EQ(pass.records, (std::vector<std::string>{"before", large, "after"}));
    reader.Shrink();
    EXPECT_EQ(reader.offset(), file.size());
  }
}

TEST(RecordReader, PassesRecordsThatLieAcrossTheEdgesOfItsBuffer) {
  std::string bytes;
  std::vector<std::string> records;
  for (int i = 0; bytes.size() < (3u << 20); ++i) {
    records.push_back(std::to_string(i) + std::string(i % 4001, 'r'));
    bytes += Record(records.back());
  }
  EXPECT_EQ(ReadAll(File(bytes)).records, records);
}

std::string HeadOf(uint64_t length) {
  const std::string bytes = Raw(length);
  return bytes + Raw(base::Masked(base::Crc32c(bytes)));
}

TEST(RecordReader, StepsOverARecordTooLargeToHoldOnceTheFileHasIt) {
  const uint64_t length = RecordReader::kMaxRecordBytes + 1;
  File file(Record("before") + HeadOf(length));
  RecordReader reader;
  const Pass first = ReadFrom(0, file, &reader);
  EXPECT_EQ(first.end, Found::kNoMore);
  EXPECT_EQ(first.skipped, 0);
  file.Extend(file.size() + length + 4);
  file.Append(Record("after"));
  const Pass second = ReadFrom(first.offset, file, &reader);
  EXPECT_EQ(second.skipped, 1);
  EXPECT_EQ(second.records, std::vector<std::string>{"after"});
}

TEST(RecordReader, RefusesALengthThatNoFileCanHave) {
  for (const uint64_t length : {UINT64_MAX, UINT64_MAX - 15, uint64_t{1} << 63}) {
    const Pass pass = ReadAll(File(HeadOf(length) + std::string(100, 'x')));
    EXPECT_EQ(pass.end, Found::kBadLength);
  }
}

TEST(RecordReader, TakesAFileCutShorterThanItsSizeForOneThatIsNotDone) {
  const File file(Record("one"));
  RecordReader reader;
  reader.Start(file.fd(), 0, file.size() + 1000);
  EXPECT_EQ(reader.Next(), Found::kRecord);
  EXPECT_EQ(reader.Next(), Found::kNoMore);
}

TEST(RecordReader, SaysWhyReadingFailed) {
  RecordReader reader;
  reader.Start(-1, 0, 100);
  EXPECT_EQ(reader.Next(), Found::kFailed);
  EXPECT_EQ(reader.error_number(), EBADF);
}

}  // namespace
}  // namespace events
