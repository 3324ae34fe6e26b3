#include "base/time.h"

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(Time, ReadsWhatItWrites) {
  const Time time(Duration(1'794'779'397'220'145));
  EXPECT_EQ(ParseTime(FormatTimeMicro(time)), time);
  EXPECT_EQ(ParseTime(FormatTime(time)), std::chrono::floor<std::chrono::seconds>(time));
}

TEST(Time, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00.1234567Z"}) {
    EXPECT_EQ(ParseTime(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace base
