#include "base/duration.h"

#include <gtest/gtest.h>

namespace base {
namespace {

using namespace std::chrono_literals;

TEST(ParseDuration, ReadsWhatPeopleWrite) {
  const std::vector<std::pair<std::string, Duration>> table = {
      {"90", 90s},           {"90s", 90s},         {"10m", 10min},
      {"1h30m", 90min},      {"500ms", 500ms},     {"0", 0s},
      {"1.5h", 90min},       {"0.5", 500ms},       {"2d", 48h},
      {"1m500ms", 60'500ms}, {"36500d", 876'000h},
  };
  for (const auto& [text, value] : table) {
    const auto read = ParseDuration(text);
    ASSERT_TRUE(read) << text << ": " << read.error().text();
    EXPECT_EQ(*read, value) << text;
  }
}

TEST(ParseDuration, RefusesWhatIsNone) {
  for (const char* text : {"", " ", "s", "1x", "1h1h", "1m1h", "1.", ".5s", "1..2s", "90 s", "1h30",
                           "1H", "+5s", "1e3s", "10minutes"}) {
    EXPECT_FALSE(ParseDuration(text)) << text;
  }
  EXPECT_EQ(ParseDuration("-5s").error().text(), "must not be negative");
}

TEST(ParseDuration, RefusesWhatWouldOverflow) {
  for (const std::string& text :
       {std::string("36501d"), std::string(400, '9') + "d", std::string("99999999999999999999")}) {
    EXPECT_EQ(ParseDuration(text).error().text(), "must be at most 100 years") << text;
  }
}

TEST(FormatDuration, ReadsLikeAClock) {
  EXPECT_EQ(FormatDuration(38'900ms), "38s");
  EXPECT_EQ(FormatDuration(134s), "2:14");
  EXPECT_EQ(FormatDuration(3723s), "1:02:03");
  EXPECT_EQ(FormatDuration(-5s), "0s");
}

TEST(FormatShortDuration, HasOneUnit) {
  EXPECT_EQ(FormatShortDuration(59s), "59s");
  EXPECT_EQ(FormatShortDuration(299s), "4m");
  EXPECT_EQ(FormatShortDuration(7300s), "2h");
  EXPECT_EQ(FormatShortDuration(80h), "3d");
}

}  // namespace
}  // namespace base
