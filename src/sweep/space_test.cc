#include "sweep/space.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

Parameter Parsed(std::string_view text) {
  auto parameter = ParseParameter(text);
  EXPECT_TRUE(parameter) << text << ": " << (parameter ? "" : parameter.error().text());
  return parameter.value_or(Parameter{});
}

std::string Refusal(std::string_view text) {
  auto parameter = ParseParameter(text);
  return parameter ? "taken: " + Describe(*parameter) : parameter.error().text();
}

TEST(Space, ReadsWhatPeopleWrite) {
  const Parameter lr = Parsed("lr=log:1e-4..1e-1");
  EXPECT_EQ(lr, (Parameter{.name = "lr", .low = 1e-4, .high = 1e-1, .log = true}));
  EXPECT_EQ(Parsed("x=0.5..2").kind, Kind::kFloat);
  EXPECT_EQ(Parsed("units=16..256").kind, Kind::kInt);
  EXPECT_EQ(Parsed("units=float:16..256").kind, Kind::kFloat);
  EXPECT_EQ(Parsed("units=log:int:16..256"), Parsed("units=int:log:16..256"));
  EXPECT_TRUE(Parsed("layers=1,2,3").ordered);
  EXPECT_TRUE(Parsed("lr=0.1,0.01,0.001").ordered);
  EXPECT_FALSE(Parsed("layers=3,1,2").ordered);
  EXPECT_EQ(Parsed("optimizer=adam, sgd").choices, (std::vector<std::string>{"adam", "sgd"}));
  EXPECT_EQ(Parsed("x=-1..-0.5").low, -1);
}

TEST(Space, SaysWhatIsWrong) {
  EXPECT_EQ(Refusal("lr"), "lr: must be NAME=VALUES, such as lr=log:1e-4..1e-1 or layers=1,2,3");
  EXPECT_EQ(Refusal("lr="), "lr: a value is empty");
  EXPECT_EQ(Refusal("lr=1,,2"), "lr: a value is empty");
  EXPECT_EQ(Refusal("lr=1,1"), "lr: 1 is given twice");
  EXPECT_EQ(Refusal("lr=a..b"), "lr: \"a\" is no number: a range is LOW..HIGH, such as 0.1..0.9");
  EXPECT_EQ(Refusal("lr=2..1"), "lr: 2..1 is empty: the low end comes first");
  EXPECT_EQ(Refusal("lr=log:0..1"), "lr: log: needs a low end above 0, not 0");
  EXPECT_EQ(Refusal("lr=log:1,2"), "lr: log: goes with a range, LOW..HIGH");
  EXPECT_EQ(Refusal("n=int:1.5..2"), "n: int: needs whole numbers at both ends");
  EXPECT_EQ(Refusal("n=nan..1"), "n: \"nan\" is no number: a range is LOW..HIGH, such as 0.1..0.9");
  EXPECT_EQ(Refusal("n=-1e308..1e308"), "n: the range is too wide");
  EXPECT_EQ(Refusal("l r=1"),
            "\"l r\" is no name of a parameter: letters, digits, _ and -, beginning with a letter");
  EXPECT_EQ(Refusal("x=a\nb"), "x: \"a\\nb\" has control characters or is not UTF-8");
}

// Found by the fuzzer: a bad name came before a refusal with its line end in it.
TEST(Space, ABadNameIsTheFirstThingToTell) {
  EXPECT_EQ(
      Refusal("a\nb=log:1"),
      "\"a\\nb\" is no name of a parameter: letters, digits, _ and -, beginning with a letter");
}

TEST(Space, IsOnceByNameAndByVariable) {
  EXPECT_EQ(CheckSpace({Parsed("a=1..2"), Parsed("a=1,2")}).error().text(), "a is given twice");
  EXPECT_EQ(CheckSpace({Parsed("a-b=1..2"), Parsed("a_b=1,2")}).error().text(),
            "a-b and a_b would be the same variable TRAINYARD_PARAM_A_B");
  EXPECT_FALSE(CheckSpace({}));
}

TEST(Space, DescriptionsReadBack) {
  for (const char* text : {"a=log:0.0001..0.1", "a=1..2", "a=float:1..2", "a=log:1..64", "a=1,2,3",
                           "a=adam,sgd", "a=log:float:1..10", "a=0.5..2"}) {
    const Parameter parameter = Parsed(text);
    EXPECT_EQ(Parsed("a=" + Describe(parameter)), parameter) << text;
  }
}

TEST(Space, UnitsCoverEveryValueEvenly) {
  const Parameter units = Parsed("n=1..4");
  std::vector<int> seen(5);
  for (int i = 0; i < 400; ++i) ++seen[static_cast<size_t>(FromUnit(units, (i + 0.5) / 400))];
  EXPECT_EQ(seen, (std::vector<int>{0, 100, 100, 100, 100}));
  EXPECT_EQ(FromUnit(Parsed("n=a,b"), 1.0), 1);
  EXPECT_EQ(FromUnit(Parsed("n=log:1e-4..1e-2"), 0.5), 0.001);
}

TEST(Space, ValuesSurviveTheirText) {
  for (const char* text : {"a=log:1e-7..1e7", "a=-3.3..12.7", "a=1..1000000", "a=x,y,z"}) {
    const Parameter parameter = Parsed(text);
    for (int i = 0; i <= 100; ++i) {
      const double value = FromUnit(parameter, i / 100.0);
      EXPECT_EQ(ValueFrom(parameter, Text(parameter, value)), value) << text;
      EXPECT_EQ(FromUnit(parameter, ToUnit(parameter, value)), value) << text;
    }
  }
  EXPECT_EQ(ValueFrom(Parsed("a=1..3"), "4").error().text(), "a: 4 is none of 1..3");
}

TEST(Space, NumbersAreNumbersInJson) {
  const Space space = {Parsed("lr=0.5..2"), Parsed("n=1..4"), Parsed("k=1,2"), Parsed("o=x,y")};
  EXPECT_EQ(base::CompactJson(ToJson(space, {0.75, 3, 1, 0})),
            R"({"lr":0.75,"n":3,"k":2,"o":"x"})");
}

TEST(Space, TheCellsOfAParameterFillTheInterval) {
  for (const char* text : {"n=3..9", "n=log:1..300", "o=a,b,c", "layers=1,2,4,8"}) {
    const Parameter p = *ParseParameter(text);
    double sum = 0;
    for (size_t i = 0; i < Cells(p); ++i) {
      sum += CellWidth(p, ToUnit(p, static_cast<double>(i) + (p.kind == Kind::kInt ? p.low : 0)));
    }
    EXPECT_NEAR(sum, 1, 1e-9) << text;
  }
  EXPECT_EQ(CellWidth(*ParseParameter("x=0.1..0.9"), 0.5), 0);
}

}  // namespace
}  // namespace sweep
