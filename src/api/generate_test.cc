#include "api/generate.h"

#include <gtest/gtest.h>

namespace api {
namespace {

size_t First(size_t) { return 0; }
size_t Last(size_t below) { return below - 1; }

std::string Error(std::string_view expression) {
  const auto value = Generate(expression, First);
  return value ? "made " + *value : value.error().text();
}

TEST(Generate, KeepsTextAndDrawsRanges) {
  EXPECT_EQ(Generate("test[0-9]{1}x", Last), "test9x");
  EXPECT_EQ(Generate("0x[A-F0-9]{4}", First), "0xAAAA");
  EXPECT_EQ(Generate("[a-z]{2}-[A-Z]{2}", Last), "zz-ZZ");
  EXPECT_EQ(Generate("[abc]{2}", Last), "cc");
  EXPECT_EQ(Generate("plain", First), "plain");
  EXPECT_EQ(Generate("", First), "");
}

TEST(Generate, KnowsTheClassesOfOc) {
  EXPECT_EQ(Generate("[\\d]{3}", Last), "999");
  EXPECT_EQ(Generate("[\\a]{3}", First), "aaa");
  EXPECT_EQ(Generate("[\\w]{1}", Last), "_");
  EXPECT_EQ(Generate("[\\A]{1}", First), "~");
  EXPECT_EQ(Generate("[a-Z]{1}", Last), "Z");
}

TEST(Generate, AsksForANumberBelowTheSizeOfTheAlphabet) {
  std::vector<size_t> asked;
  const auto random = [&asked](size_t below) {
    asked.push_back(below);
    return below / 2;
  };
  EXPECT_EQ(Generate("[0-9]{2}[\\w]{1}", random), "55F");
  EXPECT_EQ(asked, (std::vector<size_t>{10, 10, 63}));
}

TEST(Generate, RefusesWhatMeansNothing) {
  EXPECT_EQ(Error("[a-z]"), "after [...] comes a length, such as {8}");
  EXPECT_EQ(Error("x[a-z]{8"), "after [...] comes a length, such as {8}");
  EXPECT_EQ(Error("["), "after [...] comes a length, such as {8}");
  EXPECT_EQ(Error("[a-z]{0}"), "a length must be between 1 and 255");
  EXPECT_EQ(Error("[a-z]{256}"), "a length must be between 1 and 255");
  EXPECT_EQ(Error("[a-z]{x}"), "a length must be between 1 and 255");
  EXPECT_EQ(Error("[z-a]{1}"), "no letters, digits or a range of them: z-a");
  EXPECT_EQ(Error("[é]{1}"), "no letters, digits or a range of them: é");
  EXPECT_EQ(Error("[\\x]{1}"), "after \\ comes one of w, d, a and A");
  EXPECT_EQ(Error("[\\]{1}"), "after \\ comes one of w, d, a and A");
  EXPECT_EQ(Error("[]{1}"), "[] names no characters");
}

TEST(Generate, IsBounded) {
  std::string expression;
  for (int i = 0; i < 20; ++i) expression += "[a-z]{255}";
  EXPECT_EQ(Error(expression), "makes more than 4096 characters");
}

}  // namespace
}  // namespace api
