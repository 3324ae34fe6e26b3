#include "base/quantity.h"

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(ParseQuantity, ReadsEveryFormOfKubernetes) {
  const std::vector<std::pair<std::string, int64_t>> table = {
      {"0", 0},
      {"1", 1},
      {"+1", 1},
      {"-0", 0},
      {"1.", 1},
      {".5k", 500},
      {"1Ki", 1024},
      {"1Gi", 1'073'741'824},
      {"1.5Gi", 1'610'612'736},
      {"512M", 512'000'000},
      {"1k", 1000},
      {"1e3", 1000},
      {"1E3", 1000},
      {"1e+3", 1000},
      {"1.5e3", 1500},
      {"1E", 1'000'000'000'000'000'000},
      {"7Ei", 8'070'450'532'247'928'832},
      {"9223372036854775807", 9'223'372'036'854'775'807},
      {"0.1Ki", 103},
      {"0000000000000000000000000000000000000001", 1},
      {"0.33333333333333333333Ti", 366'503'875'926},
  };
  for (const auto& [text, value] : table) {
    const auto read = ParseQuantity(text);
    ASSERT_TRUE(read) << text << ": " << read.error().text();
    EXPECT_EQ(*read, value) << text;
  }
}

TEST(ParseQuantity, RoundsFractionsUp) {
  EXPECT_EQ(*ParseQuantity("500m"), 1);
  EXPECT_EQ(*ParseQuantity("1001m"), 2);
  EXPECT_EQ(*ParseQuantity("1n"), 1);
  EXPECT_EQ(*ParseQuantity("1e-900"), 1);
  EXPECT_EQ(*ParseQuantity("0e-900"), 0);
}

TEST(ParseMilliQuantity, CountsThousandths) {
  EXPECT_EQ(*ParseMilliQuantity("1.5"), 1500);
  EXPECT_EQ(*ParseMilliQuantity("500m"), 500);
  EXPECT_EQ(*ParseMilliQuantity("100u"), 1);
  EXPECT_EQ(*ParseMilliQuantity("2"), 2000);
}

TEST(ParseQuantity, RefusesWhatIsNone) {
  for (const char* text :
       {"",     " ",     "1 Gi", "Gi",   ".",    "-",    "+",
        "1KB",  "1ki",   "1K",   "1mi",  "1e",   "1e+",  "1e++3",
        "1e3k", "1.2.3", "--1",  "0x10", "1Gib", "five", "1e99999999999999999999"}) {
    EXPECT_FALSE(ParseQuantity(text)) << text;
  }
  EXPECT_EQ(ParseQuantity("-1").error().text(), "must not be negative");
}

TEST(ParseQuantity, RefusesWhatDoesNotFit) {
  for (const char* text : {"8Ei", "9223372036854775808", "10E", "1e19", "1e1000", "9000000Ti"}) {
    EXPECT_EQ(ParseQuantity(text).error().text(), "is too large") << text;
  }
  EXPECT_EQ(ParseQuantity(std::string(500, '9')).error().text(), "has too many digits");
}

TEST(ParseMemory, TakesWhatPeopleType) {
  EXPECT_EQ(*ParseMemory("768M"), 768'000'000);
  EXPECT_EQ(*ParseMemory("2g"), 2'000'000'000);
  EXPECT_EQ(*ParseMemory("2GB"), 2'000'000'000);
  EXPECT_EQ(*ParseMemory("512m"), 512'000'000);
  EXPECT_EQ(*ParseMemory("512mib"), 536'870'912);
  EXPECT_EQ(*ParseMemory(" 1.5GiB "), 1'610'612'736);
  EXPECT_EQ(*ParseMemory("4K"), 4000);
  EXPECT_EQ(*ParseMemory("100b"), 100);
  EXPECT_FALSE(ParseMemory("i"));
  EXPECT_FALSE(ParseMemory("b"));
  EXPECT_FALSE(ParseMemory("-1g"));
  EXPECT_FALSE(ParseMemory("5ib"));
}

TEST(FormatBytes, IsShortForPeople) {
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(FormatBytes(17), "17");
  EXPECT_EQ(FormatBytes(512 << 20), "512Mi");
  EXPECT_EQ(FormatBytes(int64_t{3} << 29), "1.5Gi");
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1Mi");
  EXPECT_EQ(FormatBytes(100'000), "97.7Ki");
  EXPECT_EQ(FormatBytes(std::numeric_limits<int64_t>::max()), "8Ei");
}

}  // namespace
}  // namespace base
