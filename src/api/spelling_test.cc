#include "api/spelling.h"

#include <gtest/gtest.h>

#include "api/sample_manifests.h"

namespace api {
namespace {

using base::Json;

TEST(OlderSpellings, AreNamed) {
  const std::string map = "tfReplicaSpecs: {Worker: {template: " + std::string(kTemplate) + "}}";
  const std::string list = "replicaSpecs: [{template: " + std::string(kTemplate) + "}]";
  EXPECT_EQ(DecodeJob(WithSpec(map)).spelling, "v1");
  EXPECT_EQ(DecodeJob(WithSpec("backoffLimit: 1, " + map)).spelling, "v1 (top-level policies)");
  EXPECT_EQ(DecodeJob(WithSpec("backoffLimit: 1, " + map, "kubeflow.org/v1beta2")).spelling,
            "v1beta2 (top-level policies)");
  EXPECT_EQ(DecodeJob(WithSpec(map, "kubeflow.org/v1beta1")).spelling, "v1beta1");
  EXPECT_EQ(DecodeJob(WithSpec(map, "kubeflow.org/v1alpha2")).spelling, "v1alpha2");
  EXPECT_EQ(DecodeJob(WithSpec(list, "kubeflow.org/v1alpha1")).spelling, "v1alpha1 (list form)");
  EXPECT_EQ(DecodeJob(WithSpec(list, "mlkube.io/v1beta1")).spelling,
            "mlkube.io/v1beta1 (list form)");
}

TEST(OlderSpellings, ListFormBecomesTheMap) {
  const Job job =
      Good(WithSpec("replicaSpecs: [{tfPort: 3333, template: {spec: {restartPolicy: "
                    "OnFailure, containers: [{name: tensorflow, image: a}]}}}, "
                    "{tfReplicaType: worker, replicas: 2, template: " +
                        std::string(kTemplate) + "}]",
                    "tensorflow.org/v1alpha1"));
  EXPECT_EQ(ReplicasOf(job.spec, Role::kMaster), 1);
  EXPECT_EQ(ReplicasOf(job.spec, Role::kWorker), 2);
  const ReplicaSpec& master = job.spec.replicas.at(Role::kMaster);
  EXPECT_EQ(master.restart_policy, RestartPolicy::kOnFailure);
  EXPECT_EQ(master.port, 3333);
  EXPECT_EQ(base::CompactJson(master.pod_template),
            R"({"spec":{"containers":[{"name":"tensorflow","image":"a",)"
            R"("ports":[{"name":"tfjob-port","containerPort":3333}]}]}})");
}

TEST(OlderSpellings, ListIsTakenInLaterVersionsToo) {
  const std::string list =
      "ReplicaSpecs: [{TfReplicaType: Ps, Template: " + std::string(kTemplate) +
      "}, {Template: " + std::string(kTemplate) + "}]";
  for (const char* version : {"kubeflow.org/v1beta1", "kubeflow.org/v1"}) {
    const Job job = Good(WithSpec(list, version));
    EXPECT_EQ(ReplicasOf(job.spec, Role::kPs), 1) << version;
    EXPECT_EQ(ReplicasOf(job.spec, Role::kChief), 1) << version;
  }
  EXPECT_EQ(DecodeJob(WithSpec(list)).warnings,
            std::vector<std::string>{
                "4:22: spec.ReplicaSpecs: is read as spec.tfReplicaSpecs, the map that v1 has"});
}

TEST(OlderSpellings, AnEmptyMapBesideAListIsNothing) {
  const std::string list = "replicaSpecs: [{template: " + std::string(kTemplate) + "}]";
  for (const char* version : {"kubeflow.org/v1alpha1", "kubeflow.org/v1"}) {
    const Job job = Good(WithSpec("tfReplicaSpecs: {}, " + list, version));
    EXPECT_EQ(job.spec.replicas.size(), 1u) << version;
  }
  EXPECT_EQ(Errors(WithSpec("tfReplicaSpecs: {Worker: {template: " + std::string(kTemplate) +
                            "}}, " + list)),
            "spec.replicaSpecs: is given twice, also as tfReplicaSpecs");
}

TEST(OlderSpellings, ListBringsItsFieldsIntoV1AsAnApiServerStoresThem) {
  const std::string fields =
      "tfImage: x, schedulerName: s, RuntimeId: 5oz2, tensorboard: {logDir: a}, "
      "terminationPolicy: {chief: {replicaName: MASTER, replicaIndex: 0}}, ";
  const std::string list = "{template: {spec: {containers: [{name: tensorflow}]}}}";
  const Job written =
      Good(WithSpec(fields + "replicaSpecs: [" + list + "]", "kubeflow.org/v1alpha1"));
  // What v1alpha1 meant unless said is filled in by its schema.
  const Job stored =
      Good(WithSpec(fields + "cleanPodPolicy: Running, tfConfigForSingleReplica: true, " +
                    "replicaSpecs: [{tfReplicaType: MASTER, " + list.substr(1) +
                    "], runPolicy: {suspend: false}"));
  EXPECT_EQ(stored, written);
  EXPECT_NE(Errors(WithSpec("tfImage: x, tfReplicaSpecs: {}")), "");
}

TEST(OlderSpellings, ImageAndSchedulerOfTheJobFillThoseOfThePods) {
  const Job job =
      Good(WithSpec("tfImage: x, schedulerName: s, replicaSpecs: [{template: {spec: "
                    "{containers: [{name: tensorflow}]}}}]",
                    "kubeflow.org/v1alpha1"));
  const Json& pod = job.spec.replicas.at(Role::kMaster).pod_template;
  EXPECT_EQ(base::StringOr(*TensorFlowContainer(pod), "image"), "x");
  EXPECT_EQ(base::StringOr(*base::Find(pod, "spec"), "schedulerName"), "s");
}

TEST(OlderSpellings, GiveASingleReplicaATfConfig) {
  const std::string map = "tfReplicaSpecs: {Chief: {template: " + std::string(kTemplate) + "}}";
  const std::string list = "replicaSpecs: [{template: " + std::string(kTemplate) + "}]";
  const auto sets = [](const std::string& text) {
    return Good(text).spec.tf_config_for_single_replica;
  };
  for (const char* version : {"v1alpha2", "v1beta1", "v1beta2"}) {
    EXPECT_TRUE(sets(WithSpec(map, "kubeflow.org/" + std::string(version)))) << version;
  }
  EXPECT_TRUE(sets(WithSpec(list, "kubeflow.org/v1alpha1")));
  EXPECT_FALSE(sets(WithSpec(map)));
  // As an API server shows one that was written as v1beta1.
  EXPECT_TRUE(sets(WithSpec("tfConfigForSingleReplica: true, " + map)));
  EXPECT_FALSE(sets(WithSpec("tfConfigForSingleReplica: false, " + map, "kubeflow.org/v1beta1")));
}

TEST(OlderSpellings, TheListFormHasABackoffLimitUnlessItSaysOne) {
  const std::string list = "replicaSpecs: [{template: " + std::string(kTemplate) + "}]";
  const auto limit = [](const std::string& text) {
    return Good(text).spec.run_policy.backoff_limit;
  };
  EXPECT_EQ(limit(WithSpec(list, "kubeflow.org/v1alpha1")), 6);
  EXPECT_EQ(limit(WithSpec(list + ", runPolicy: {suspend: false}")), 6);
  EXPECT_EQ(limit(WithSpec("backoffLimit: 2, " + list, "kubeflow.org/v1alpha1")), 2);
  EXPECT_EQ(limit(OneWorker("")), std::nullopt);
}

TEST(OlderSpellings, AreCleanedUpAsTheyWereThen) {
  const std::string map = "tfReplicaSpecs: {Worker: {template: " + std::string(kTemplate) + "}}";
  const std::string list = "replicaSpecs: [{template: " + std::string(kTemplate) + "}]";
  const auto policy = [](const std::string& text) {
    return Good(text).spec.run_policy.clean_pod_policy;
  };
  EXPECT_EQ(policy(WithSpec(map, "kubeflow.org/v1beta1")), CleanPodPolicy::kRunning);
  EXPECT_EQ(policy(WithSpec(list, "kubeflow.org/v1alpha1")), CleanPodPolicy::kRunning);
  EXPECT_EQ(policy(WithSpec("cleanPodPolicy: None, " + map, "kubeflow.org/v1beta1")),
            CleanPodPolicy::kNone);
  EXPECT_EQ(policy(WithSpec(map)), CleanPodPolicy::kNone);
}

TEST(OlderSpellings, TerminationPolicyMayNameTheReplicaThatV1Takes) {
  const auto job = [](const std::string& chief, const std::string& type) {
    return WithSpec("terminationPolicy: {chief: " + chief + "}, replicaSpecs: [{tfReplicaType: " +
                        type + ", template: " + std::string(kTemplate) + "}]",
                    "kubeflow.org/v1alpha1");
  };
  EXPECT_EQ(Errors(job("{replicaName: MASTER, replicaIndex: 0}", "MASTER")), "");
  EXPECT_EQ(Errors(job("{replicaName: WORKER, replicaIndex: 0}", "WORKER")), "");
  EXPECT_NE(Errors(job("{replicaName: WORKER, replicaIndex: 1}", "WORKER")), "");
  EXPECT_NE(Errors(job("{replicaName: MASTER}", "WORKER")), "");
  EXPECT_NE(Errors(job("{replicaName: PS}", "PS")), "");
}

TEST(OlderSpellings, FieldsOfTheListAreReadAsStrictlyAsThoseOfV1) {
  const auto told = [](const std::string& fields) {
    return Errors(WithSpec(
        fields + ", replicaSpecs: [{isDefaultPS: 1, template: " + std::string(kTemplate) + "}]",
        "kubeflow.org/v1alpha1"));
  };
  const std::string flag =
      "\nspec.replicaSpecs[0].isDefaultPS: must be true or false, not the number 1";
  EXPECT_EQ(told("tfImage: []"), "spec.tfImage: must be text, not a list" + flag);
  EXPECT_EQ(told("schedulerName: {}"), "spec.schedulerName: must be text, not a map" + flag);
  EXPECT_EQ(told("tensorboard: x"), "spec.tensorboard: must be a map, not \"x\"" + flag);
  EXPECT_EQ(told("RuntimeId: [a]"), "spec.runtimeId: must be text, not a list" + flag);
  EXPECT_EQ(
      told("terminationPolicy: {chief: {replicaNam: MASTER}}"),
      "spec.terminationPolicy.chief.replicaNam: unknown field, did you mean replicaName?" + flag);
}

TEST(Warnings, TellWhatIsOverriddenMovedOrIgnored) {
  const std::string pod =
      "{spec: {restartPolicy: Always, containers: [{name: tensorflow, image: a}]}}";
  EXPECT_EQ(
      DecodeJob(WithSpec("tfReplicaSpecs: {Worker: {template: " + pod + "}}")).warnings,
      std::vector<std::string>{
          "4:67: spec.tfReplicaSpecs.Worker.template.spec.restartPolicy: is overridden by the "
          "replica's restartPolicy, Never"});
  EXPECT_EQ(
      DecodeJob(OneWorker("backoffLimit: 3")).warnings,
      std::vector<std::string>{
          "4:22: spec.backoffLimit: is read as spec.runPolicy.backoffLimit, where v1 has it"});
  EXPECT_EQ(DecodeJob(WithSpec("tensorboard: {logDir: x}, replicaSpecs: [{template: " + pod + "}]",
                               "kubeflow.org/v1alpha1"))
                .warnings,
            std::vector<std::string>{
                "4:21: spec.tensorboard: is ignored: TensorBoard runs beside a job, not in it"});
  EXPECT_EQ(DecodeJob(WithSpec("tfReplicaSpecs: {}")).warnings,
            std::vector<std::string>{
                "4:24: spec.tfReplicaSpecs: asks for no replicas: nothing will run"});
  EXPECT_EQ(DecodeJob(OneWorker("runPolicy: {schedulingPolicy: {minAvailable: 10}}")).warnings,
            std::vector<std::string>{
                "4:53: spec.runPolicy.schedulingPolicy.minAvailable: is 10, more than all "
                "replicas (1): a gang scheduler would wait for ever"});
}

}  // namespace
}  // namespace api
