#include "cli/sweep_manifest.h"

#include <gtest/gtest.h>

#include "base/yaml.h"

namespace cli {
namespace {

// A plan over optimizer and momentum, which exists only for sgd.
SweepPlan PlanWith(const std::string& container, const std::string& before = "") {
  SweepPlan plan{.name = "s", .manifest = before + "spec: {containers: [" + container + "]}\n"};
  plan.settings.space = {*sweep::ParseParameter("optimizer=sgd,adam"),
                         *sweep::ParseParameter("momentum=0.0..0.9 when optimizer=sgd")};
  return plan;
}

std::string Made(const std::string& container, const sweep::Point& point) {
  auto text = ManifestOf(PlanWith(container), {.number = 4, .point = point});
  if (!text) return text.error().text();
  const auto root = base::ReadYaml(*text);
  return base::CompactJson(base::ToJson(root->Find("spec")->Find("containers")->items[0]));
}

constexpr double kOff = sweep::kInactive;

TEST(SweepManifest, HasTheValuesOfTheTrial) {
  EXPECT_EQ(Made(R"({args: ["--o=${optimizer}", "--m=${momentum}", "${trial}"]})", {0, 0.5}),
            R"({"args":["--o=sgd","--m=0.5","s-t4"]})");
}

TEST(SweepManifest, LeavesOutTheArgumentOfAnInactiveParameter) {
  EXPECT_EQ(Made(R"({args: ["--o=${optimizer}", "--m=${momentum}", -v]})", {1, kOff}),
            R"({"args":["--o=adam","-v"]})");
  EXPECT_EQ(Made(R"({command: [a, "${optimizer}", "${momentum}"]})", {1, kOff}),
            R"({"command":["a","adam"]})");
}

TEST(SweepManifest, LeavesOutTheFlagBeforeIt) {
  EXPECT_EQ(Made(R"({args: [-v, --m, "${momentum}", --o, "${optimizer}"]})", {1, kOff}),
            R"({"args":["-v","--o","adam"]})");
  EXPECT_EQ(Made(R"({args: [--x=1, "${momentum}", --o, "${optimizer}"]})", {1, kOff}),
            R"({"args":["--x=1","--o","adam"]})");
}

TEST(SweepManifest, LeavesOutTheVariableOfAnInactiveParameter) {
  const std::string env =
      R"({env: [{name: O, value: "${optimizer}"}, {name: M, value: "${momentum}"}]})";
  EXPECT_EQ(Made(env, {1, kOff}), R"({"env":[{"name":"O","value":"adam"}]})");
  EXPECT_EQ(Made(env, {0, 0.5}),
            R"({"env":[{"name":"O","value":"sgd"},{"name":"M","value":"0.5"}]})");
}

TEST(SweepManifest, RefusesAnInactiveParameterThatCannotBeLeftOut) {
  for (const char* container : {R"({args: ["${optimizer} ${momentum}"]})",
                                R"({args: ["${optimizer}"], image: "i:${momentum}"})",
                                R"({args: ["${optimizer}"], "x${momentum}": 1})"}) {
    EXPECT_TRUE(Made(container, {1, kOff}).starts_with("${momentum} has no value in some trials"))
        << container;
    // Whatever the first trial is.
    const auto checked = CheckManifest(PlanWith(container), "f.yaml");
    ASSERT_FALSE(checked) << container;
  }
}

TEST(SweepManifest, ATemplateDoesNotRequireWhatIsInactive) {
  const SweepPlan plan = PlanWith(R"({args: ["${optimizer}", "--m=${momentum}"]})",
                                  "kind: Template\napiVersion: v1\nparameters: [{name: optimizer}, "
                                  "{name: momentum, required: true}]\nobjects: []\n");
  const std::string text = *ManifestOf(plan, {.number = 0, .point = {1, kOff}});
  EXPECT_FALSE(text.contains("momentum")) << text;
  EXPECT_TRUE(ManifestOf(plan, {.number = 0, .point = {0, 0.5}})->contains("momentum"));
}

}  // namespace
}  // namespace cli
