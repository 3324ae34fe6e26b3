#include "base/crc32c.h"

#include <numeric>
#include <string>

#include <gtest/gtest.h>

namespace base {
namespace {

std::string Bytes(size_t count) {
  std::string bytes(count, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

// RFC 3720, appendix B.4, and the check value of the catalogue of parametrised CRCs.
TEST(Crc32c, GivesThePublishedNumbers) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string counting(32, '\0');
  std::iota(counting.begin(), counting.end(), '\0');
  EXPECT_EQ(Crc32c(counting), 0x46dd794eu);
}

TEST(Crc32c, IsMaskedAsTfRecordDoes) {
  // The head of every event file: a length of 24, as TensorFlow writes it.
  EXPECT_EQ(Masked(Crc32c({"\x18\0\0\0\0\0\0\0", 8})), 0x224b7fa3u);
}

TEST(Crc32c, IsTheSameByInstructionAndByTable) {
  const std::string bytes = Bytes(10'000);
  for (size_t size = 0; size < bytes.size(); size += size < 900 ? 1 : 97) {
    for (size_t begin : {0, 1, 7}) {
      const auto part = std::string_view(bytes).substr(begin, size);
      ASSERT_EQ(ExtendCrc32c(17, part), ExtendCrc32cByTable(17, part)) << begin << "+" << size;
    }
  }
}

TEST(Crc32c, MayBeTakenPieceByPiece) {
  const std::string bytes = Bytes(4'000);
  const std::string_view view = bytes;
  for (size_t cut : {0, 1, 500, 3'999, 4'000}) {
    EXPECT_EQ(ExtendCrc32c(Crc32c(view.substr(0, cut)), view.substr(cut)), Crc32c(view));
  }
}

}  // namespace
}  // namespace base
