#include "base/env_file.h"

#include <gtest/gtest.h>

namespace base {
namespace {

using Variables = std::map<std::string, std::string>;

TEST(ParseEnvFile, SplitsAtTheFirstEqualsSignAndKeepsTheValueWhole) {
  EXPECT_EQ(
      *ParseEnvFile("A=x=y c\nB=\"quoted\" \nC=  two\n_d9=#no comment\n"),
      (Variables{{"A", "x=y c"}, {"B", "\"quoted\" "}, {"C", "  two"}, {"_d9", "#no comment"}}));
}

TEST(ParseEnvFile, SkipsBlankLinesAndComments) {
  EXPECT_EQ(*ParseEnvFile("\n  \n# c=d\n\t# e=f\n  A=1"), (Variables{{"A", "1"}}));
}

TEST(ParseEnvFile, AllowsEmptyValuesAndFiles) {
  EXPECT_EQ(*ParseEnvFile("A=\n"), (Variables{{"A", ""}}));
  EXPECT_EQ(*ParseEnvFile(""), Variables());
}

TEST(ParseEnvFile, ToleratesWindowsLineEndsAndByteOrderMarks) {
  EXPECT_EQ(*ParseEnvFile("\xEF\xBB\xBF"
                          "A=1\r\n\r\nB=2\r\n"),
            (Variables{{"A", "1"}, {"B", "2"}}));
}

TEST(ParseEnvFile, LetsTheLaterLineWin) {
  EXPECT_EQ(*ParseEnvFile("A=1\nA=2\n"), (Variables{{"A", "2"}}));
}

TEST(ParseEnvFile, TellsOfEveryWrongLineAndNeverOfAValue) {
  const auto read = ParseEnvFile(
      std::string_view("A=1\nhunter2\n=hunter2\nmy-key=hunter2\nexport A=hunter2\nB =hunter2\n"
                       "1C=hunter2\nD=hunt\0er2\n",
                       86));
  ASSERT_FALSE(read);
  const std::string name =
      "the name before '=' must be letters, digits and _, not beginning with a digit";
  EXPECT_EQ(read.error().text(),
            "line 2: no '='; line 3: no name before '='; line 4: " + name +
                "; line 5: begins with 'export', which is for a shell; line 6: " + name +
                "; line 7: " + name + "; line 8: has a NUL byte");
}

TEST(ParseEnvFile, StopsTellingAfterTwentyLines) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "x\n";
  EXPECT_TRUE(ParseEnvFile(text).error().text().ends_with("line 20: no '='; and 980 more lines"));
}

TEST(ParseEnvFile, RefusesMoreThanAMebibyte) {
  EXPECT_EQ(ParseEnvFile(std::string(kMaxEnvFile + 1, '\n')).error().text(), "larger than 1 MiB");
}

}  // namespace
}  // namespace base
