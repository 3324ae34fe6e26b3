#include "cli/args.h"

#include <gtest/gtest.h>

#include "cli/commands.h"

namespace cli {
namespace {

const Command& Named(std::string_view name) {
  for (const Command& command : Commands()) {
    if (command.name == name) return command;
  }
  ADD_FAILURE() << "no command " << name;
  return Commands().front();
}

std::string Refusal(std::string_view command, const std::vector<std::string>& words) {
  auto args = Parse(Named(command), words);
  return args ? "" : args.error().text();
}

TEST(Parse, TakesFlagsInEveryUsualForm) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"-w", "4", "a.py"},
                                             {"-w4", "a.py"},
                                             {"--workers", "4", "a.py"},
                                             {"a.py", "--workers=4"}}) {
    auto args = Parse(Named("run"), words);
    ASSERT_TRUE(args);
    EXPECT_EQ(args->Get("workers"), "4");
    EXPECT_EQ(args->operand(0), "a.py");
  }
}

TEST(Parse, LeavesTheScriptsOwnArgumentsAlone) {
  auto args = Parse(Named("run"), {"a.py", "--", "--workers", "9", "--", "-x"});
  ASSERT_TRUE(args);
  EXPECT_FALSE(args->Has("workers"));
  EXPECT_EQ(args->rest(), (std::vector<std::string>{"--workers", "9", "--", "-x"}));
}

TEST(Parse, NamesTheNearestFlag) {
  EXPECT_EQ(Refusal("run", {"--wrokers", "2"}), "unknown flag --wrokers: did you mean --workers?");
  EXPECT_EQ(Refusal("ps", {"--zzzzzz"}), "unknown flag --zzzzzz");
}

TEST(Parse, SaysWhatIsMissingOrTooMuch) {
  EXPECT_EQ(Refusal("run", {"--workers"}), "--workers needs a value: N");
  EXPECT_EQ(Refusal("run", {"--detach=yes", "a.py"}), "--detach takes no value but true or false");
  EXPECT_EQ(Refusal("run", {"a.py", "b.py"}),
            "unexpected word 'b.py': the script's own arguments go after --");
  EXPECT_EQ(Refusal("ps", {"--", "x"}), "'--' has no meaning here");
}

TEST(Args, NumbersOutOfRangeAreRefusedWithTheRange) {
  for (const char* value : {"0", "-1", "1001", "two", "1e3", ""}) {
    auto args = Parse(Named("run"), {"--workers", value, "a.py"});
    ASSERT_TRUE(args);
    EXPECT_EQ(args->Number("workers", 2, 1, 1000).error().text(),
              "--workers: must be a whole number from 1 to 1000, not '" + std::string(value) + "'");
  }
}

TEST(Args, ChoicesAreTakenInAnyCase) {
  auto args = Parse(Named("run"), {"--restart", "exitcode", "a.py"});
  EXPECT_EQ(args->OneOf("restart", "", {"Never", "ExitCode"}), "ExitCode");
  args = Parse(Named("run"), {"--restart", "often", "a.py"});
  EXPECT_EQ(args->OneOf("restart", "", {"Never", "ExitCode"}).error().text(),
            "--restart: must be one of Never, ExitCode, not 'often'");
}

// Completion and the man page are made from the same table, so a letter must mean one flag.
TEST(Commands, NoCommandHasTwoFlagsOfOneNameOrLetter) {
  for (const Command& command : Commands()) {
    std::set<std::string_view> names;
    std::set<char> letters;
    for (const std::vector<Flag>& flags : {command.flags, CommonFlags()}) {
      for (const Flag& flag : flags) {
        EXPECT_TRUE(names.insert(flag.name).second) << command.name << " --" << flag.name;
        if (!flag.letter) continue;
        EXPECT_TRUE(letters.insert(flag.letter).second) << command.name << " -" << flag.letter;
      }
    }
  }
}

}  // namespace
}  // namespace cli
