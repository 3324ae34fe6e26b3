#include "events/plain_text.h"

#include <gtest/gtest.h>

namespace events {
namespace {

TEST(StripAnsi, TakesOutColoursTitlesAndWhatIsCutShort) {
  EXPECT_EQ(StripAnsi("\x1b[1m120/468\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━\x1b[0m"), "120/468 ━━━");
  EXPECT_EQ(StripAnsi("a\x1b]0;title\ab\x1b]0;title\x1b\\c"), "abc");
  EXPECT_EQ(StripAnsi("a\x1b(b\x1b[38;5;1"), "a");
  EXPECT_EQ(StripAnsi("a\x1b"), "a");
  EXPECT_EQ(StripAnsi("plain"), "plain");
}

TEST(CollapseCarriageReturns, KeepsTheLastRewrite) {
  EXPECT_EQ(CollapseCarriageReturns("one\rtwo\rthree"), "three");
  EXPECT_EQ(CollapseCarriageReturns("longer text\rshort"), "short");
  EXPECT_EQ(CollapseCarriageReturns("\r1/8 [=>.]\b\b\b\b\b\b\b\b\b\b\r8/8 [===]\n"), "8/8 [===]");
}

TEST(CollapseCarriageReturns, WaitsForTheRewriteAfterATrailingReturn) {
  EXPECT_EQ(CollapseCarriageReturns("one\rtwo\r"), "two");
  EXPECT_EQ(CollapseCarriageReturns("one\rtwo\b\b\b\r"), "two");
  EXPECT_EQ(CollapseCarriageReturns("one\r\x1b[K"), "one");
  EXPECT_EQ(CollapseCarriageReturns("one\r\n"), "one");
  EXPECT_EQ(CollapseCarriageReturns("\r\r"), "");
  EXPECT_EQ(CollapseCarriageReturns(""), "");
}

TEST(CollapseCarriageReturns, CarriesOutBackspacesByCharacterNotByByte) {
  EXPECT_EQ(CollapseCarriageReturns("wait |\b/\b-\bdone"), "wait done");
  EXPECT_EQ(CollapseCarriageReturns("━━━\b\bab"), "━ab");
  EXPECT_EQ(CollapseCarriageReturns("\b\babc"), "abc");
  EXPECT_EQ(CollapseCarriageReturns("abc\b"), "abc");
  EXPECT_EQ(CollapseCarriageReturns("a\x1b[1mb\bc\x1b[0m"), "ac\x1b[0m");
}

}  // namespace
}  // namespace events
