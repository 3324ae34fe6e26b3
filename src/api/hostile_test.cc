#include <functional>

#include <gtest/gtest.h>

#include "api/sample_manifests.h"
#include "base/yaml.h"

namespace api {
namespace {

using base::Json;

// Every value of a good manifest is replaced by every wrong kind of value, one at a time.
void ReplaceEach(const Json& value, const std::function<void(const Json&)>& use,
                 const std::function<Json(const Json&)>& around) {
  static const std::vector<Json> kWrong = {nullptr,
                                           true,
                                           -1,
                                           1e300,
                                           "x",
                                           "",
                                           base::JsonArray{},
                                           base::JsonObject{},
                                           base::JsonArray{nullptr},
                                           base::JsonArray{base::JsonArray{}},
                                           base::JsonObject{{"", nullptr}}};
  for (const Json& wrong : kWrong) use(around(wrong));
  if (const auto* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      ReplaceEach(member, use, [&](const Json& inner) {
        base::JsonObject copy = *object;
        copy[key] = inner;
        return around(copy);
      });
    }
  } else if (const auto* array = value.if_array()) {
    for (size_t i = 0; i < array->size(); ++i) {
      ReplaceEach((*array)[i], use, [&](const Json& inner) {
        base::JsonArray copy = *array;
        copy[i] = inner;
        return around(copy);
      });
    }
  }
}

TEST(HostileManifests, OfWrongTypesAreAnsweredWithAnErrorOrAJobThatReadsBack) {
  const std::vector<std::string> manifests = {
      OneWorker("successPolicy: AllWorkers, runPolicy: {cleanPodPolicy: All, suspend: true, "
                "backoffLimit: 1, schedulingPolicy: {minAvailable: 1, minResources: {cpu: 1}}}",
                "replicas: 2, restartPolicy: Always"),
      WithSpec("tfImage: x, schedulerName: s, terminationPolicy: {chief: {replicaName: MASTER, "
               "replicaIndex: 0}}, replicaSpecs: [{tfReplicaType: MASTER, tfPort: 1, replicas: 1, "
               "template: {spec: {restartPolicy: Never, containers: [{name: tensorflow, args: [a], "
               "env: [{name: a, value: b}], ports: [{name: tfjob-port, containerPort: 1}]}]}}}]",
               "kubeflow.org/v1alpha1"),
      WithSpec(
          "cleanPodPolicy: All, tfReplicaSpecs: {Ps: {template: " + std::string(kTemplate) + "}}",
          "kubeflow.org/v1beta1"),
  };
  int tried = 0;
  for (const std::string& text : manifests) {
    ReplaceEach(
        base::ToJson(*base::ReadYaml(text)),
        [&](const Json& changed) {
          ++tried;
          const std::string yaml = base::WriteYaml(changed);
          const Decoded decoded = DecodeJob(yaml);
          if (!decoded.errors.empty()) return;
          EXPECT_EQ(Good(base::WriteYaml(EncodeJob(decoded.job))), decoded.job) << yaml;
        },
        [](const Json& inner) { return inner; });
  }
  EXPECT_GT(tried, 500);
}

TEST(HostileManifests, WithWrongTypesGiveOneErrorEach) {
  EXPECT_EQ(Errors("[]"), ": must be a map, not a list");
  EXPECT_EQ(Errors("7"), ": must be a map, not the number 7");
  EXPECT_EQ(Errors(""), ": the manifest is empty");
  EXPECT_EQ(Errors("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: a}\nspec: []\n"),
            "spec: must be a map, not a list");
  EXPECT_EQ(
      Errors("apiVersion: [a]\nkind: {b: c}\nmetadata: {name: a}\nspec: {tfReplicaSpecs: {}}\n"),
      "apiVersion: must be text, not a list\nkind: must be text, not a map");
  EXPECT_EQ(Errors(WithContainers("[[]]")),
            "spec.tfReplicaSpecs.Worker.template.spec.containers[0]: must be a map, not a list");
  EXPECT_EQ(
      Errors(WithContainers("[{name: tensorflow, image: a, env: [null], ports: [null]}]")),
      "spec.tfReplicaSpecs.Worker.template.spec.containers[0].env[0]: must be a map, not null\n"
      "spec.tfReplicaSpecs.Worker.template.spec.containers[0].ports[0]: must be a map, not null");
  EXPECT_EQ(Errors(WithSpec("tfReplicaSpecs: {Worker: 3}")),
            "spec.tfReplicaSpecs.Worker: must be a map, not the number 3");
}

TEST(HostileManifests, CannotForgeLinesOfTheErrorText) {
  const std::string told =
      Describe(DecodeJob(OneWorker("\"a\\nb.yaml:1:1: all is well\": 1")).errors, "x.yaml");
  EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
  const std::string duplicate =
      Describe(DecodeJob("\"a\\nb\": 1\n\"a\\nb\": 2\n").errors, "x.yaml");
  EXPECT_EQ(std::ranges::count(duplicate, '\n'), 1) << duplicate;
}

TEST(HostileManifests, AreToldOfTwoHundredErrorsAndTheNumberOfTheRest) {
  std::string text = "tfReplicaSpecs: {";
  for (int i = 0; i < 5000; ++i) text += "w" + std::to_string(i) + ": {}, ";
  const Decoded decoded = DecodeJob(WithSpec(text + "}"));
  ASSERT_EQ(decoded.errors.size(), 201u);
  EXPECT_EQ(decoded.errors.back(), (FieldError{"", 0, 0, "and 4800 more errors"}));
}

TEST(HostileManifests, CannotFillTheScreenWithOneValue) {
  EXPECT_LT(Errors(OneWorker("successPolicy: " + std::string(100'000, 'x'))).size(), 300u);
  EXPECT_LT(Errors(OneWorker(std::string(900, 'x') + ": 1")).size(), 300u);
}

}  // namespace
}  // namespace api
