#include "api/plain_job.h"

#include <gtest/gtest.h>

#include "api/tfjob.h"

namespace api {
namespace {

// A Job with this in its spec, in flow style.
Decoded Decode(const std::string& spec) {
  return DecodeJobNode(base::ReadYaml("apiVersion: batch/v1\nkind: Job\nmetadata: {name: job1}\n"
                                      "spec: {" +
                                      spec + "}\n")
                           .value());
}

std::string Pod(const std::string& container, const std::string& policy = "OnFailure") {
  return "template: {spec: {restartPolicy: " + policy + ", containers: [" + container + "]}}";
}

const std::string kPod = Pod("{name: main, image: a}");

std::string Errors(const std::string& spec) { return Describe(Decode(spec).errors, "j"); }

TEST(PlainJob, IsATfJobOfOneWorker) {
  const Decoded decoded = Decode(Pod("{name: tensorflow, image: learnk8s/mnist:1.0.0}"));
  EXPECT_EQ(Describe(decoded.errors, "j"), "");
  EXPECT_EQ(decoded.warnings, std::vector<std::string>());
  EXPECT_EQ(decoded.spelling, "batch/v1 Job");
  EXPECT_EQ(
      base::CompactJson(EncodeJob(decoded.job)),
      R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"job1",)"
      R"("namespace":"default"},"spec":{"runPolicy":{"cleanPodPolicy":"None","backoffLimit":6},)"
      R"("tfReplicaSpecs":{"Worker":{"replicas":1,"restartPolicy":"OnFailure","template":{"spec":)"
      R"({"containers":[{"name":"tensorflow","image":"learnk8s/mnist:1.0.0",)"
      R"("ports":[{"name":"tfjob-port","containerPort":2222}]}]}}}}}})");
}

TEST(PlainJob, KeepsItsPolicies) {
  const RunPolicy policy =
      Decode(
          "backoffLimit: 0, activeDeadlineSeconds: 90, ttlSecondsAfterFinished: 5, "
          "suspend: true, parallelism: 1, completions: 1, " +
          kPod)
          .job.spec.run_policy;
  EXPECT_EQ(policy.backoff_limit, 0);
  EXPECT_EQ(policy.active_deadline_seconds, 90);
  EXPECT_EQ(policy.ttl_seconds_after_finished, 5);
  EXPECT_TRUE(policy.suspend);
}

TEST(PlainJob, TriesAgainUnderBothOfItsRestartPolicies) {
  for (const char* policy : {"OnFailure", "Never"}) {
    const Decoded decoded = Decode(Pod("{name: main, image: a}", policy));
    EXPECT_EQ(Describe(decoded.errors, "j"), "");
    EXPECT_EQ(decoded.job.spec.replicas.at(Role::kWorker).restart_policy,
              RestartPolicy::kOnFailure);
  }
}

TEST(PlainJob, HasItsOnlyContainerRenamed) {
  const ReplicaSpec worker = Decode(kPod).job.spec.replicas.at(Role::kWorker);
  const base::Json* container = TensorFlowContainer(worker.pod_template);
  ASSERT_TRUE(container);
  EXPECT_EQ(base::StringOr(*container, "image"), "a");
  EXPECT_EQ(Errors(Pod("{name: main, image: a}, {name: side, image: b}")),
            "j:4:64: spec.template.spec.containers: must have a container named tensorflow, has "
            "\"main\", \"side\"\n");
  EXPECT_EQ(Errors(Pod("{name: tensorflow, image: a}, {name: side, image: b}")), "");
}

TEST(PlainJob, IsRefusedWhenItAsksForSeveralPods) {
  EXPECT_EQ(Errors("parallelism: 2, completions: 4, " + kPod),
            "j:4:21: spec.parallelism: must be 1, not 2: replicas that know of each other are a "
            "TFJob's\n"
            "j:4:37: spec.completions: must be 1, not 4: replicas that know of each other are a "
            "TFJob's\n");
}

TEST(PlainJob, IsToldItsErrorsByItsOwnPaths) {
  EXPECT_EQ(Errors("backoffLimit: -1, " + Pod("{name: main}", "Always")),
            "j:4:22: spec.backoffLimit: must be at least 0, not -1\n"
            "j:4:59: spec.template.spec.restartPolicy: must be OnFailure or Never, not "
            "\"Always\"\n"
            "j:4:80: spec.template.spec.containers[0].image: is required\n");
  EXPECT_EQ(Errors("backofLimit: 3, template: {spec: {containers: []}}"),
            "j:4:8: spec.backofLimit: unknown field, did you mean backoffLimit?\n"
            "j:4:41: spec.template.spec.restartPolicy: is required: OnFailure or Never\n"
            "j:4:54: spec.template.spec.containers: must have a container named tensorflow\n");
  EXPECT_EQ(Errors(""), "j:4:7: spec.template: is required, with a container named tensorflow\n");
}

TEST(PlainJob, SaysWhatIsIgnored) {
  EXPECT_EQ(Decode("completionMode: Indexed, " + kPod).warnings,
            std::vector<std::string>{"4:24: spec.completionMode: is ignored: the Job becomes a "
                                     "TFJob of one worker"});
}

TEST(PlainJob, OfAnotherShapeIsAnsweredWithErrors) {
  for (const char* spec :
       {"7", "[]", "{template: 3}", "{template: {spec: []}}",
        "{template: {spec: {containers: {}}}}", "{template: {spec: {containers: [3]}}}"}) {
    const std::string text = "{apiVersion: batch/v1, kind: Job, spec: " + std::string(spec) + "}";
    EXPECT_FALSE(DecodeJobNode(base::ReadYaml(text).value()).errors.empty()) << text;
  }
}

}  // namespace
}  // namespace api
