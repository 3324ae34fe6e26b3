#include "api/decode.h"

#include <gtest/gtest.h>

#include "api/sample_manifests.h"
#include "base/yaml.h"

namespace api {
namespace {

using base::Json;

std::string PortsOf(const Job& job, Role role) {
  const Json* container = TensorFlowContainer(job.spec.replicas.at(role).pod_template);
  return container ? base::CompactJson(*base::Find(*container, "ports")) : "none";
}

// Defaults are those of training-operator v1.9.

TEST(Defaults, FillWhatAnAuthorLeavesOut) {
  const Job job = Good(OneWorker());
  EXPECT_EQ(job.metadata.name_space, "default");
  EXPECT_EQ(job.spec.run_policy, RunPolicy());
  EXPECT_EQ(job.spec.run_policy.clean_pod_policy, CleanPodPolicy::kNone);
  EXPECT_EQ(job.spec.success_policy, SuccessPolicy::kDefault);
  EXPECT_FALSE(job.spec.enable_dynamic_worker);
  EXPECT_EQ(job.extensions, Extensions());
  const ReplicaSpec& worker = job.spec.replicas.at(Role::kWorker);
  EXPECT_EQ(worker.replicas, 1);
  EXPECT_EQ(worker.restart_policy, RestartPolicy::kNever);
  EXPECT_EQ(worker.port, 2222);
  EXPECT_EQ(PortsOf(job, Role::kWorker), R"([{"name":"tfjob-port","containerPort":2222}])");
}

TEST(Defaults, AppendThePortAfterOtherPorts) {
  const Job job = Good(WithContainers(
      "[{name: tensorflow, image: a, ports: [{name: customPort, containerPort: 1234}]}]"));
  EXPECT_EQ(PortsOf(job, Role::kWorker), R"([{"name":"customPort","containerPort":1234},)"
                                         R"({"name":"tfjob-port","containerPort":2222}])");
}

TEST(Defaults, KeepAPortThatIsNamed) {
  const Job job = Good(WithContainers(
      "[{name: tensorflow, image: a, ports: [{name: tfjob-port, containerPort: 3333}]}]"));
  EXPECT_EQ(PortsOf(job, Role::kWorker), R"([{"name":"tfjob-port","containerPort":3333}])");
  EXPECT_EQ(job.spec.replicas.at(Role::kWorker).port, 3333);
}

TEST(Defaults, PutThePortIntoTheTensorFlowContainerOnly) {
  const Job job = Good(WithContainers("[{name: side, image: b}, {name: tensorflow, image: a}]"));
  EXPECT_EQ(
      base::CompactJson(job.spec.replicas.at(Role::kWorker).pod_template),
      R"({"spec":{"containers":[{"name":"side","image":"b"},{"name":"tensorflow","image":"a",)"
      R"("ports":[{"name":"tfjob-port","containerPort":2222}]}]}})");
}

TEST(Defaults, KnowReplicaTypesInAnyLetterCase) {
  const Job job = Good(WithSpec("tfReplicaSpecs: {WORKER: {template: " + std::string(kTemplate) +
                                "}, ps: {template: " + std::string(kTemplate) +
                                "}, cHief: {template: " + std::string(kTemplate) + "}}"));
  EXPECT_EQ(ReplicasOf(job.spec, Role::kWorker), 1);
  EXPECT_EQ(ReplicasOf(job.spec, Role::kPs), 1);
  EXPECT_EQ(ReplicasOf(job.spec, Role::kChief), 1);
  EXPECT_EQ(ReplicasOf(job.spec, Role::kEvaluator), 0);
}

TEST(Defaults, TakeNullForAbsent) {
  EXPECT_EQ(Good(OneWorker("runPolicy: , successPolicy: ~", "replicas: null, restartPolicy: ")),
            Good(OneWorker()));
  EXPECT_EQ(Good(OneWorker("runPolicy: {cleanPodPolicy: , suspend: ~, schedulingPolicy: }")),
            Good(OneWorker()));
}

TEST(UnknownFields, AreErrorsInOurPartAndNameTheNearest) {
  EXPECT_EQ(Errors(OneWorker("runPolicy: {cleanPodPolcy: All}")),
            "spec.runPolicy.cleanPodPolcy: unknown field, did you mean cleanPodPolicy?");
  EXPECT_EQ(Errors(OneWorker("", "replica: 2")),
            "spec.tfReplicaSpecs.Worker.replica: unknown field, did you mean replicas?");
  EXPECT_EQ(Errors(OneWorker("", "banana: 2")),
            "spec.tfReplicaSpecs.Worker.banana: unknown field, expected one of: replicas, "
            "restartPolicy, template");
}

TEST(UnknownFields, ThatMostLikelyMeantARequiredOneAreTheOnlyError) {
  EXPECT_EQ(Errors(WithSpec("tfReplicaSpec: {}")),
            "spec.tfReplicaSpec: unknown field, did you mean tfReplicaSpecs?");
}

TEST(UnknownFields, OfPodTemplatesPassThroughInOrder) {
  const Job job = Good(OneWorker());
  const std::string containers =
      R"([{"zeta":1,"name":"tensorflow","image":"a","alpha":[1.5,null,{"x":9007199254740993}],)"
      R"("ports":[{"name":"tfjob-port","containerPort":2222}]}])";
  EXPECT_EQ(base::CompactJson(
                Good(WithContainers(containers)).spec.replicas.at(Role::kWorker).pod_template),
            R"({"spec":{"containers":)" + containers + "}}");
}

TEST(Texts, ThatYamlTakesForSomethingElseAreToldWhereKubernetesWouldRefuse) {
  EXPECT_EQ(Errors(WithContainers("[{name: tensorflow, image: a, args: [--verbose, yes, 017]}]")),
            "spec.tfReplicaSpecs.Worker.template.spec.containers[0].args[1]: must be text, not the "
            "boolean true; put it in quotes\n"
            "spec.tfReplicaSpecs.Worker.template.spec.containers[0].args[2]: must be text, not the "
            "number 15; put it in quotes");
}

TEST(Texts, OfEnvironmentVariablesAreNeverShown) {
  EXPECT_EQ(
      Errors(WithContainers("[{name: tensorflow, image: a, env: [{name: PIN, value: 12345}]}]")),
      "spec.tfReplicaSpecs.Worker.template.spec.containers[0].env[0].value: must be text; put "
      "it in quotes");
}

TEST(Describe, PutsFilePlaceAndPathBeforeEachError) {
  EXPECT_EQ(Describe({{"spec.x", 14, 9, "must be at least 0, not -1"}, {"", 0, 0, "empty"}},
                     "mnist.yaml"),
            "mnist.yaml:14:9: spec.x: must be at least 0, not -1\nmnist.yaml: empty\n");
}

TEST(DecodeJobObject, ReadsWhatTheApiServerSends) {
  const Json object = *base::ParseJson(
      R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"a","uid":"u","generation":3,
      "managedFields":[{}],"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"tfReplicaSpecs":{}},
      "status":{"conditions":[]}})");
  const Decoded decoded = DecodeJobObject(object);
  EXPECT_TRUE(decoded.errors.empty());
  EXPECT_EQ(decoded.job.metadata.uid, "u");
}

}  // namespace
}  // namespace api
