#include "api/template.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace api {
namespace {

struct Result {
  std::string objects;
  std::string errors;
  std::vector<std::string> warnings;
};

// A template with these parameters (flow style), and its objects.
Result Expand(const std::string& parameters, const std::string& objects, const Values& given = {},
              const std::string& more = "") {
  const std::string text = "apiVersion: template.openshift.io/v1\nkind: Template\nparameters: [" +
                           parameters + "]\nobjects: [" + objects + "]\n" + more;
  FieldReader reader;
  Templates templates(given, [](size_t below) { return below - 1; }, reader);
  base::JsonArray made;
  for (const base::Node& object : templates.Expand(base::ReadYaml(text).value())) {
    made.push_back(base::ToJson(object));
  }
  templates.CheckGiven();
  return {base::CompactJson(made), Describe(reader.InOrder(), "t"), reader.warnings()};
}

TEST(Template, IsKnownByKindAndVersion) {
  const auto is = [](const char* text) { return IsTemplate(base::ReadYaml(text).value()); };
  EXPECT_TRUE(is("{apiVersion: v1, kind: Template}"));
  EXPECT_TRUE(is("{apiVersion: template.openshift.io/v1, kind: Template}"));
  EXPECT_FALSE(is("{apiVersion: argoproj.io/v1, kind: Template}"));
  EXPECT_FALSE(is("{apiVersion: v1, kind: List}"));
  EXPECT_FALSE(is("7"));
}

TEST(Template, ValuesGivenWinOverThoseWritten) {
  const std::string parameters = "{name: A, value: a}, {name: B, value: '2'}";
  EXPECT_EQ(Expand(parameters, "{x: '${A}', z: '${{B}}'}").objects, R"([{"x":"a","z":2}])");
  EXPECT_EQ(Expand(parameters, "{x: '${A}', z: '${{B}}'}", {{"B", "5"}}).objects,
            R"([{"x":"a","z":5}])");
  EXPECT_EQ(Expand(parameters, "{x: '${A}'}", {{"A", ""}}).objects, R"([{"x":""}])");
}

TEST(Template, ValuesAreGeneratedOnceAndOnlyWhenNoneIsThere) {
  const std::string parameters = "{name: A, generate: expression, from: 'u[a-z]{3}'}";
  EXPECT_EQ(Expand(parameters, "{x: '${A}', z: '${A}'}").objects, R"([{"x":"uzzz","z":"uzzz"}])");
  EXPECT_EQ(Expand(parameters, "{x: '${A}'}", {{"A", "me"}}).objects, R"([{"x":"me"}])");
  EXPECT_EQ(Expand(parameters, "{x: '${A}'}", {{"A", ""}}).objects, R"([{"x":""}])");
  EXPECT_EQ(
      Expand("{name: A, value: b, generate: expression, from: '[a-z]{3}'}", "{x: '${A}'}").objects,
      R"([{"x":"b"}])");
}

TEST(Template, NamesEveryParameterThatIsMissing) {
  const std::string parameters =
      "{name: A, required: true}, {name: B, required: true, value: b}, {name: C, required: true}";
  const Result result = Expand(parameters, "{x: '${A}'}");
  EXPECT_EQ(result.errors,
            "t:3:13: parameters: A, C are required: give --param A=VALUE --param C=VALUE\n");
  EXPECT_EQ(result.objects, "[]");
  EXPECT_EQ(Expand(parameters, "", {{"A", "1"}, {"C", ""}}).errors,
            "t:3:13: parameters: C is required: give --param C=VALUE\n");
}

TEST(Template, KnowsWhichParametersItHas) {
  const std::string parameters = "{name: WORKERS}, {name: IMAGE}";
  EXPECT_EQ(Expand(parameters, "", {{"WORKER", "1"}}).errors,
            "t: --param WORKER: the template has no such parameter, did you mean WORKERS?\n");
  EXPECT_EQ(Expand(parameters, "", {{"X", "1"}}).errors,
            "t: --param X: the template has no such parameter, expected one of: IMAGE, WORKERS\n");
  EXPECT_EQ(Expand("", "", {{"X", "1"}}).errors, "t: --param: the template has no parameters\n");
}

TEST(Template, TellsAllThatIsWrongWithItsParameters) {
  EXPECT_EQ(
      Expand(
          "{name: A-B}, {}, 3, null, {name: n}, {name: A, value: 3}, {name: B, generate: magic}, "
          "{name: C, generate: expression, from: '[a'}, {name: D, valeu: x}, "
          "{name: E}, {name: E}",
          "{}")
          .errors,
      "t:3:21: parameters[0].name: must be letters, digits and '_'\n"
      "t:3:27: parameters[1].name: must be letters, digits and '_'\n"
      "t:3:31: parameters[2]: must be a map, not the number 3\n"
      "t:3:34: parameters[3]: must be a map, not null\n"
      "t:3:47: parameters[4].name: must be text, not the boolean false; put it in quotes\n"
      "t:3:68: parameters[5].value: must be text, not the number 3; put it in quotes\n"
      "t:3:92: parameters[6].generate: must be expression, not \"magic\"\n"
      "t:3:138: parameters[7].from: after [...] comes a length, such as {8}\n"
      "t:3:155: parameters[8].valeu: unknown field, did you mean value?\n"
      "t:3:177: parameters[10]: E is given twice\n");
}

TEST(Template, PutsItsLabelsOnEveryObject) {
  const Result result =
      Expand("{name: A, value: a}", "{kind: X}, {metadata: {labels: {app: old, own: '1'}}}, 7", {},
             "labels: {app: '${A}', '${A}.b/c': d}");
  EXPECT_EQ(result.errors, "");
  EXPECT_EQ(result.objects, R"([{"kind":"X","metadata":{"labels":{"app":"a","a.b/c":"d"}}},)"
                            R"({"metadata":{"labels":{"own":"1","app":"a","a.b/c":"d"}}},7])");
}

TEST(Template, KeepsANamespaceOnlyWithAParameterInIt) {
  const Result result =
      Expand("{name: A, value: a}",
             "{metadata: {namespace: fixed, name: x}}, {metadata: {namespace: 'ns-${A}'}}");
  EXPECT_EQ(result.objects, R"([{"metadata":{"name":"x"}},{"metadata":{"namespace":"ns-a"}}])");
  EXPECT_EQ(result.warnings,
            std::vector<std::string>{
                "4:34: metadata.namespace: is dropped, as oc process does: only one with a "
                "parameter in it counts"});
}

TEST(Template, IsBoundedInItsLabelsAndMessages) {
  std::string labels, objects, parameters;
  for (int i = 0; i < 1'000; ++i) {
    labels += fmt::format("a{}: b, ", i);
    objects += "{}, ";
    parameters += fmt::format("{{name: A{}, required: true}}, ", i);
  }
  EXPECT_EQ(Expand("", objects, {}, "labels: {" + labels + "}").errors,
            "t:4:407: parameters and labels make the template too large\n");
  EXPECT_LT(Expand(parameters, "").errors.size(), 300u);
}

TEST(Template, TellsWhatIsWrongWithItself) {
  EXPECT_EQ(Expand("", "", {}, "object: []").errors,
            "t:5:1: object: unknown field, did you mean objects?\n");
  EXPECT_EQ(Expand("", "{}", {}, "labels: {a: 1}").errors,
            "t:5:13: labels[a]: must be text, not the number 1; put it in quotes\n");
}

}  // namespace
}  // namespace api
