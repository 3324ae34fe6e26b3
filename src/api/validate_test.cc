#include <gtest/gtest.h>

#include "api/decode.h"
#include "api/sample_manifests.h"

namespace api {
namespace {

// Rules V1-V8 of training-operator v1.9's webhook, and what it lets through to go wrong later.

TEST(Rules, AreToldByPath) {
  const std::string workers = "spec.tfReplicaSpecs.Worker";
  const std::string name =
      "metadata.name: must be lower-case letters, digits and '-', start with a letter and not end "
      "with '-', not ";
  const std::string job = OneWorker();
  const auto named = [&](const std::string& text) {
    return job.substr(0, job.find("{name: a}")) + "{name: " + text + "}" +
           job.substr(job.find("{name: a}") + 9);
  };
  const std::vector<std::pair<std::string, std::string>> table = {
      // V1
      {named("1a"), name + "\"1a\""},
      {named("a.b"), name + "\"a.b\""},
      {named("a-"), name + "\"a-\""},
      {named("Ab"), name + "\"Ab\""},
      {named("''"), "metadata.name: is required"},
      {named("12"), "metadata.name: must be text, not the number 12; put it in quotes"},
      // V2
      {OneWorker("runPolicy: {managedBy: me}"),
       "spec.runPolicy.managedBy: must be kubeflow.org/training-operator or "
       "kueue.x-k8s.io/multikueue, not \"me\""},
      {OneWorker("runPolicy: {managedBy: ''}"), "spec.runPolicy.managedBy: must not be empty"},
      {OneWorker("runPolicy: {managedBy: kueue.x-k8s.io/multikueue}"), ""},
      // V4
      {WithSpec(""), "spec.tfReplicaSpecs: is required"},
      {WithSpec("tfReplicaSpecs: "), "spec.tfReplicaSpecs: is required"},
      {WithSpec("tfReplicaSpecs: {}"), ""},
      // V5
      {WithContainers("[]"),
       workers + ".template.spec.containers: must have a container named tensorflow"},
      {WithContainers("null"),
       workers + ".template.spec.containers: is required: a container named tensorflow"},
      {WithSpec("tfReplicaSpecs: {Worker: }"),
       workers + ".template: is required, with a container named tensorflow"},
      {WithSpec("tfReplicaSpecs: {Worker: {template: {}}}"),
       workers + ".template.spec: is required, with a container named tensorflow"},
      // V6
      {WithContainers("[{name: tensorflow}]"),
       workers + ".template.spec.containers[0].image: is required"},
      {WithContainers("[{name: tensorflow, image: ''}]"),
       workers + ".template.spec.containers[0].image: must not be empty"},
      {WithContainers("[{name: tensorflow, image: a}, {name: b}]"),
       workers + ".template.spec.containers[1].image: is required"},
      // V7
      {WithContainers("[{name: main, image: a}, {image: b}]"),
       workers + ".template.spec.containers: must have a container named tensorflow, has \"main\", "
                 "one without a name"},
      // V8
      {WithSpec("tfReplicaSpecs: {chief: {template: " + std::string(kTemplate) +
                "}, Master: {template: " + std::string(kTemplate) + "}}"),
       "spec.tfReplicaSpecs: must not have both Chief and Master: they are the same role"},
      // Accepted upstream, and then wrong.
      {WithSpec("tfReplicaSpecs: {Foo: {}}"),
       "spec.tfReplicaSpecs.Foo: unknown replica type, expected one of: Chief, Evaluator, Master, "
       "PS, Worker"},
      {WithSpec("tfReplicaSpecs: {Workers: {}}"),
       "spec.tfReplicaSpecs.Workers: unknown replica type, did you mean Worker?"},
      {OneWorker("", "replicas: 0"), ""},
      {OneWorker("", "replicas: 10000"), ""},
      {OneWorker("", "replicas: 10001"),
       workers + ".replicas: must be between 0 and 10000, not 10001"},
      {OneWorker("", "replicas: -1"), workers + ".replicas: must be between 0 and 10000, not -1"},
      {OneWorker("", "replicas: 2.0"), ""},
      {OneWorker("", "replicas: 2.5"),
       workers + ".replicas: must be a whole number, not the number 2.5"},
      {OneWorker("", "replicas: '2'"), workers + ".replicas: must be a whole number, not \"2\""},
      {OneWorker("", "replicas: 1e300"),
       workers + ".replicas: must be at most 2147483647, not 1e+300"},
      {OneWorker("", "replicas: 18446744073709551615"),
       workers + ".replicas: must be at most 2147483647, not 18446744073709551615"},
      {OneWorker("", "replicas: -9223372036854775808"),
       workers + ".replicas: must be at least -2147483647, not -9223372036854775808"},
      {WithSpec("tfReplicaSpecs: {Chief: {replicas: 3, template: " + std::string(kTemplate) + "}}"),
       ""},
      {OneWorker("", "restartPolicy: Foo"),
       workers + ".restartPolicy: must be Never, OnFailure, Always or ExitCode, not \"Foo\""},
      {OneWorker("runPolicy: {cleanPodPolicy: Foo}"),
       "spec.runPolicy.cleanPodPolicy: must be None, Running or All, not \"Foo\""},
      {OneWorker("runPolicy: {cleanPodPolicy: ''}"),
       "spec.runPolicy.cleanPodPolicy: must be None, Running or All, not \"\""},
      {OneWorker("successPolicy: Foo"), "spec.successPolicy: must be AllWorkers, not \"Foo\""},
      {OneWorker("successPolicy: ''"), ""},
      {OneWorker("runPolicy: {activeDeadlineSeconds: -1}"),
       "spec.runPolicy.activeDeadlineSeconds: must be at least 0, not -1"},
      {OneWorker("runPolicy: {backoffLimit: -1}"),
       "spec.runPolicy.backoffLimit: must be at least 0, not -1"},
      {OneWorker("runPolicy: {ttlSecondsAfterFinished: -1}"),
       "spec.runPolicy.ttlSecondsAfterFinished: must be at least 0, not -1"},
      {WithContainers("[{name: tensorflow, image: a, ports: [{containerPort: 0}]}]"),
       workers + ".template.spec.containers[0].ports[0].containerPort: must be between 1 and "
                 "65535, not 0"},
      {WithContainers(
           "[{name: tensorflow, image: a, ports: [{containerPort: 1}, {containerPort: 2, "
           "protocol: UDP}]}]"),
       ""},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(Errors(text), expected) << text;
}

TEST(Rules, CountTheLongestReplicaNameNotTheJobName) {
  const auto named = [](size_t length, const std::string& worker) {
    std::string text = OneWorker("", worker);
    return text.replace(text.find("{name: a}"), 9, "{name: " + std::string(length, 'a') + "}");
  };
  EXPECT_EQ(Errors(named(54, "replicas: 10")), "");
  EXPECT_EQ(Errors(named(55, "replicas: 10")),
            "metadata.name: must have at most 54 characters, not 55: replica names such as "
            "NAME-worker-9 may have 63");
  EXPECT_NE(Errors(named(54, "replicas: 11")), "");
  EXPECT_EQ(Errors(named(63, "replicas: 0")), "");
  EXPECT_NE(Errors(named(64, "replicas: 0")), "");
}

TEST(Rules, LeaveRoomForTheEndOfAGeneratedName) {
  const auto generated = [](size_t length) {
    std::string text = OneWorker();
    return text.replace(text.find("{name: a}"), 9,
                        "{generateName: " + std::string(length - 1, 'a') + "-}");
  };
  EXPECT_EQ(Errors(generated(49)), "");
  EXPECT_EQ(Errors(generated(50)),
            "metadata.generateName: must have at most 49 characters, not 50: replica names such as "
            "NAME-worker-0 may have 63");
}

TEST(Rules, RefuseAReplicaTypeGivenTwice) {
  EXPECT_EQ(Errors(WithSpec("tfReplicaSpecs: {worker: {template: " + std::string(kTemplate) +
                            "}, Worker: {template: " + std::string(kTemplate) + "}}")),
            "spec.tfReplicaSpecs.Worker: is given twice, also as worker");
}

TEST(Rules, HoldForAJobThatCameFromNoManifest) {
  Job job;
  job.metadata.name = "Mnist";
  job.spec.replicas[Role::kWorker].replicas = -1;
  job.spec.replicas[Role::kWorker].port = 0;
  std::vector<std::string> paths;
  for (const FieldError& error : Validate(job)) paths.push_back(error.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"metadata.name", "spec.tfReplicaSpecs.Worker.replicas",
                                             "spec.tfReplicaSpecs.Worker"}));
}

TEST(ValidateUpdate, LetsNobodyChangeTheManagerOrTheQueue) {
  Job before;
  before.spec.run_policy.scheduling_policy = SchedulingPolicy{.queue = "a"};
  Job after = before;
  EXPECT_TRUE(ValidateUpdate(before, after).empty());
  after.spec.run_policy.managed_by = "kueue.x-k8s.io/multikueue";
  after.spec.run_policy.scheduling_policy->queue = "b";
  EXPECT_EQ(
      ValidateUpdate(before, after),
      (std::vector<FieldError>{{"spec.runPolicy.managedBy", 0, 0, "is immutable"},
                               {"spec.runPolicy.schedulingPolicy.queue", 0, 0, "is immutable"}}));
}

TEST(ValidateUpdate, AllowsAddingAndRemovingAQueue) {
  Job without;
  Job with;
  with.spec.run_policy.scheduling_policy = SchedulingPolicy{.queue = "a"};
  EXPECT_TRUE(ValidateUpdate(without, with).empty());
  EXPECT_TRUE(ValidateUpdate(with, without).empty());
}

}  // namespace
}  // namespace api
