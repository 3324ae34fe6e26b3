#include "base/strings.h"

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(Nearest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(Nearest("wrokers", {"workers", "ps", "chief"}), "workers");
  EXPECT_EQ(Nearest("worker", {"workers", "ps"}), "workers");
}

TEST(Nearest, TakesTheBeginningOfAWordForTheShortestSuchWord) {
  EXPECT_EQ(Nearest("--work", {"--port", "--worker-cpu", "--workers"}), "--workers");
}

TEST(Nearest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(Nearest("banana", {"workers", "ps", "chief"}), std::nullopt);
}

TEST(ParseInt, TakesAWholeNumberOnly) {
  EXPECT_EQ(ParseInt("-12"), -12);
  EXPECT_EQ(ParseInt("12a"), std::nullopt);
  EXPECT_EQ(ParseInt(""), std::nullopt);
  EXPECT_EQ(ParseInt("99999999999999999999"), std::nullopt);
}

TEST(OneLine, EscapesAndCutsForMessages) {
  EXPECT_EQ(OneLine("a\nb\tc\x01\x7F é"), "a\\nb\\tc\\x01\\x7f é");
  EXPECT_EQ(OneLine("ééé", 3), "éé...");
  EXPECT_EQ(OneLine("abc", 3), "abc");
}

}  // namespace
}  // namespace base
