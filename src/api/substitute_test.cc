#include "api/substitute.h"

#include <gtest/gtest.h>

namespace api {
namespace {

const Values kValues = {{"NAME", "mnist"},       {"N", "3"},          {"ON", "true"},
                        {"EMPTY", ""},           {"LIST", "[1, {}]"}, {"LOOP", "${NAME}"},
                        {"BAD", "a: \"b\"\n- c"}};

struct Result {
  std::string json;
  std::string errors;
  std::vector<std::string> warnings;
};

Result Apply(const std::string& yaml, const Values& values = kValues) {
  FieldReader reader;
  base::Node tree = base::ReadYaml(yaml).value();
  Substitution(reader).Apply(tree, values);
  return {base::CompactJson(base::ToJson(tree)), Describe(reader.InOrder(), "t"),
          reader.warnings()};
}

TEST(Substitution, PutsTextIntoText) {
  EXPECT_EQ(Apply("a: x-${NAME}-${N}\nb: ['${N}', '${EMPTY}']").json,
            R"({"a":"x-mnist-3","b":["3",""]})");
}

TEST(Substitution, PutsAValueInPlaceOfAText) {
  EXPECT_EQ(Apply("a: ${{N}}\nb: '${{ON}}'\nc: ${{LIST}}").json, R"({"a":3,"b":true,"c":[1,{}]})");
}

TEST(Substitution, TakesWhatIsNoJsonForText) {
  EXPECT_EQ(Apply("[\"${{NAME}}\", \"${{EMPTY}}\"]").json, R"(["mnist",""])");
  EXPECT_EQ(Apply("${{X}}", {{"X", "1e999"}}).json, R"("1e999")");
  EXPECT_EQ(Apply("${{X}}", {{"X", "[{\"a\": -1e999}]"}}).json, R"("[{\"a\": -1e999}]")");
}

TEST(Substitution, IsDoneInKeys) {
  EXPECT_EQ(Apply("'${NAME}/x': {'a-${N}': 1}").json, R"({"mnist/x":{"a-3":1}})");
  EXPECT_EQ(Apply("{a: 1, '${N}': 2, 3: 4}").errors, "t:1:19: the key \"3\" is given twice\n");
}

TEST(Substitution, NeverReadsAValueAsYaml) {
  EXPECT_EQ(Apply("a: ${BAD}").json, R"({"a":"a: \"b\"\n- c"})");
  EXPECT_EQ(Apply("a: ${{BAD}}").json, R"({"a":"a: \"b\"\n- c"})");
}

TEST(Substitution, DoesNotLookIntoValues) {
  EXPECT_EQ(Apply("a: ${LOOP}").json, R"({"a":"${NAME}"})");
}

TEST(Substitution, LeavesWhatNamesNoParameterAndSaysSoOnce) {
  const Result result = Apply("a: ${HOME}/${HOME}\nb: ${{HOME}}\nc: ${HOME}");
  EXPECT_EQ(result.json, R"({"a":"${HOME}/${HOME}","b":"${{HOME}}","c":"${HOME}"})");
  EXPECT_EQ(result.warnings,
            (std::vector<std::string>{
                "1:4: ${HOME}: stays as it is: the template has no such parameter",
                "2:4: ${{HOME}}: stays as it is: the template has no such parameter"}));
}

TEST(Substitution, LeavesAValueThatIsNotTheWholeText) {
  const Result result = Apply("a: x${{N}}");
  EXPECT_EQ(result.json, R"({"a":"x${{N}}"})");
  EXPECT_EQ(result.warnings, std::vector<std::string>{
                                 "1:4: ${{N}}: stays as it is: it must be the whole of a value"});
}

TEST(Substitution, KnowsNoOtherForms) {
  const std::string text = R"json(["$N","${N","${}","${N-1}","$${","${{N}","$(N)"])json";
  const Result result = Apply(text);
  EXPECT_EQ(result.json, text);
  EXPECT_EQ(result.warnings, std::vector<std::string>());
}

TEST(Substitution, GivesNewValuesThePlaceOfTheOld) {
  FieldReader reader;
  base::Node tree = base::ReadYaml("a:\n  b: ${{X}}").value();
  Substitution(reader).Apply(tree, {{"X", R"({"c": [7]})"}});
  const base::Node& seven = tree.Find("a")->Find("b")->Find("c")->items.at(0);
  EXPECT_EQ(std::pair(seven.line, seven.column), std::pair(2, 6));
}

TEST(Substitution, IsBounded) {
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "- ${BIG}\n";
  EXPECT_EQ(Apply(many, {{"BIG", std::string(10'000, 'x')}}).errors,
            "t:1678:3: parameters and labels make the template too large\n");
  many.clear();
  for (int i = 0; i < 1'000; ++i) many += "- ${{BIG}}\n";
  std::string list = "[0";
  for (int i = 0; i < 999; ++i) list += ",0";
  EXPECT_EQ(Apply(many, {{"BIG", list + "]"}}).errors,
            "t:100:3: parameters and labels make the template too large\n");
  EXPECT_EQ(
      Apply("[['${{DEEP}}']]", {{"DEEP", std::string(63, '[') + std::string(63, ']')}}).errors,
      "t:1:3: nested deeper than 64 levels\n");
}

}  // namespace
}  // namespace api
