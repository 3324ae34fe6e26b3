#include "base/json.h"

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(Json, KeepsOrderAndWholeNumbers) {
  const std::string text = R"({"z":1,"a":[9007199254740993,0.5,true,null,"é\n"],"e":{}})";
  EXPECT_EQ(CompactJson(*ParseJson(text)), text);
}

TEST(Json, NamesThePlaceOfAnError) {
  EXPECT_TRUE(ParseJson("{\n  \"a\": nope}").error().text().starts_with("2:"))
      << ParseJson("{\n  \"a\": nope}").error().text();
  EXPECT_FALSE(ParseJson("{} x"));
  EXPECT_FALSE(ParseJson(""));
  EXPECT_FALSE(ParseJson("[1"));
}

TEST(Json, RefusesDeepNesting) {
  EXPECT_FALSE(ParseJson(std::string(5000, '[') + std::string(5000, ']')));
}

TEST(Json, IndentsForPeople) {
  EXPECT_EQ(IndentedJson(*ParseJson(R"({"a":[1,{}]})")), "{\n  \"a\": [\n    1,\n    {}\n  ]\n}\n");
}

TEST(Json, WritesBytesThatAreNoTextAsReplacementCharacters) {
  const std::string bad = std::string("a\xff\xc3") + "b\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf end";
  const std::string text = CompactJson(JsonObject{{bad, bad}, {"good", "äß→😀"}});
  const auto read = ParseJson(text);
  ASSERT_TRUE(read) << text;
  EXPECT_EQ(StringOr(*read, "good"), "äß→😀");
  const auto again = ParseJson(IndentedJson(*read));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *read);
}

}  // namespace
}  // namespace base
