#include "backend/cluster/objects.h"

#include <gtest/gtest.h>

#include "api/decode.h"
#include "backend/cluster/testing.h"

namespace backend::cluster {
namespace {

using namespace testing;

std::string Compact(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* at = &object;
  for (std::string_view key : path) {
    at = base::Find(*at, key);
    if (!at) return "(none)";
  }
  return base::CompactJson(*at);
}

const Json& Container(const Json& pod) { return pod.at("spec").at("containers").at(0); }

std::string EnvironmentOf(const Json& pod, std::string_view name) {
  std::string value = "(none)";
  for (const Json& entry : Container(pod).at("env").as_array()) {
    if (base::StringOr(entry, "name") == name) value = base::StringOr(entry, "value");
  }
  return value;
}

TEST(MakePod, NamesLabelsAndOwnsAsTrainingOperator) {
  const Json pod = MakePod(MakeJob(), {Role::kWorker, 1}, 3, {});
  EXPECT_EQ(Compact(pod, {"metadata", "name"}), "\"mnist-worker-1\"");
  EXPECT_EQ(Compact(pod, {"metadata", "namespace"}), "\"team-a\"");
  EXPECT_EQ(
      Compact(pod, {"metadata", "labels"}),
      R"({"training.kubeflow.org/operator-name":"tfjob-controller",)"
      R"("training.kubeflow.org/job-name":"mnist","training.kubeflow.org/replica-type":"worker",)"
      R"("training.kubeflow.org/replica-index":"1","trainyard.dev/attempt":"3"})");
  EXPECT_EQ(Compact(pod, {"metadata", "ownerReferences"}),
            R"([{"apiVersion":"kubeflow.org/v1","kind":"TFJob","name":"mnist","uid":"u-1",)"
            R"("controller":true,"blockOwnerDeletion":true}])");
  EXPECT_EQ(Compact(pod, {"metadata", "finalizers"}), R"(["trainyard.dev/observed"])");
  EXPECT_EQ(Compact(pod, {"spec", "restartPolicy"}), "\"Never\"");
}

TEST(MakePod, MarksTheMasterWhichIsWorkerZeroWithoutAChief) {
  const auto role = [](const Json& pod) {
    return base::StringOr(pod.at("metadata").at("labels"), kRoleLabel);
  };
  EXPECT_EQ(role(MakePod(MakeJob(), {Role::kWorker, 0}, 0, {})), "master");
  EXPECT_EQ(role(MakePod(MakeJob(), {Role::kWorker, 1}, 0, {})), "");
  api::Job chief = MakeJob();
  chief.spec.replicas[Role::kChief] = chief.spec.replicas[Role::kWorker];
  EXPECT_EQ(role(MakePod(chief, {Role::kWorker, 0}, 0, {})), "");
  EXPECT_EQ(role(MakePod(chief, {Role::kChief, 1}, 0, {})), "master");
}

TEST(MakePod, TellsTfConfigLastSoThatItWins) {
  const Json pod = MakePod(MakeJob(), {Role::kWorker, 1}, 0, {});
  EXPECT_EQ(EnvironmentOf(pod, "TF_CONFIG"),
            R"({"cluster":{"worker":["mnist-worker-0.team-a.svc:2222",)"
            R"("mnist-worker-1.team-a.svc:2222"]},"task":{"type":"worker","index":1},)"
            R"("environment":"cloud"})");
  EXPECT_EQ(base::StringOr(Container(pod).at("env").as_array().back(), "name"), "TF_CONFIG");
  EXPECT_EQ(EnvironmentOf(pod, "PYTHONUNBUFFERED"), "0") << "the author's value wins over ours";
}

TEST(MakePod, PutsTheClusterDomainIntoAddresses) {
  const Json pod = MakePod(MakeJob(), {Role::kWorker, 0}, 0, {.cluster_domain = "cluster.local"});
  EXPECT_NE(EnvironmentOf(pod, "TF_CONFIG").find("mnist-worker-0.team-a.svc.cluster.local:2222"),
            std::string::npos);
}

TEST(MakePod, KeepsEveryFieldOfTheTemplateThatItDoesNotKnow) {
  const Json pod = MakePod(MakeJob(), {Role::kWorker, 0}, 0, {});
  EXPECT_EQ(Compact(pod, {"spec", "someday"}), R"({"new":[1]})");
  EXPECT_EQ(Compact(pod, {"metadata", "annotations"}), R"({"note":"yes"})");
}

TEST(MakeService, IsHeadlessAndFoundBeforeItsPodIsReady) {
  const Json service = MakeService(MakeJob(), {Role::kWorker, 1});
  EXPECT_EQ(Compact(service, {"metadata", "name"}), "\"mnist-worker-1\"");
  EXPECT_EQ(
      Compact(service, {"spec"}),
      R"({"clusterIP":"None","selector":{"training.kubeflow.org/operator-name":"tfjob-controller",)"
      R"("training.kubeflow.org/job-name":"mnist","training.kubeflow.org/replica-type":"worker",)"
      R"("training.kubeflow.org/replica-index":"1"},"ports":[{"name":"tfjob-port","port":2222}],)"
      R"("publishNotReadyAddresses":true})");
}

TEST(MakeService, HasEveryPortOfTheContainerOnceAndUnderAName) {
  api::Job job = MakeJob();
  Json& containers = job.spec.replicas.at(Role::kWorker).pod_template.at("spec").at("containers");
  containers.at(0).get_object()["ports"] =
      Parse(R"([{"containerPort":80},{"containerPort":81},{"containerPort":81,"protocol":"UDP"},)"
            R"({"name":"again","containerPort":80},{"name":"tfjob-port","containerPort":2222}])");
  EXPECT_EQ(base::CompactJson(MakeService(job, {Role::kWorker, 0}).at("spec").at("ports")),
            R"([{"port":80,"name":"port-80"},{"port":81,"name":"port-81"},)"
            R"({"port":81,"protocol":"UDP","name":"port-81-udp"},)"
            R"({"name":"tfjob-port","port":2222}])");
}

api::Job ElasticDlJob() {
  api::Job job = MakeJob();
  job.extensions.dialect = api::Dialect::kElasticDl;
  return job;
}

TEST(ElasticDl, PodsHaveItsNamesItsLabelsAndItsAddresses) {
  const Json pod = MakePod(ElasticDlJob(), {Role::kWorker, 1}, 0, {.cluster_domain = "c.local"});
  EXPECT_EQ(Compact(pod, {"metadata", "name"}), "\"mnist-edljob-worker-1\"");
  const Json& labels = pod.at("metadata").at("labels");
  EXPECT_EQ(base::StringOr(labels, "app"), "elasticdl");
  EXPECT_EQ(base::StringOr(labels, "elasticdl-job-name"), "mnist");
  EXPECT_EQ(base::StringOr(labels, "elasticdl-replica-type"), "worker");
  EXPECT_EQ(base::StringOr(labels, "elasticdl-replica-index"), "1");
  EXPECT_EQ(base::StringOr(labels, "training.kubeflow.org/job-name"), "mnist");
  const std::string text = base::CompactJson(pod);
  EXPECT_NE(text.find(R"(\"mnist-edljob-worker-0:3333\")"), std::string::npos) << text;
}

TEST(ElasticDl, ServicesHaveAnAddressAndOnePort) {
  const Json service = MakeService(ElasticDlJob(), {Role::kWorker, 1});
  const std::string labels =
      R"({"app":"elasticdl","elasticdl-job-name":"mnist","elasticdl-replica-type":"worker",)"
      R"("elasticdl-replica-index":"1"})";
  EXPECT_EQ(Compact(service, {"metadata", "name"}), "\"mnist-edljob-worker-1\"");
  EXPECT_EQ(Compact(service, {"metadata", "annotations"}), labels);
  EXPECT_EQ(Compact(service, {"spec"}),
            R"({"selector":)" + labels +
                R"(,"ports":[{"port":3333,"targetPort":3333}],"publishNotReadyAddresses":true})");
}

TEST(ElasticDl, PodsGoWithTheirMasterWithoutAskingAnybody) {
  const Json pod = MakePod(ElasticDlJob(), {Role::kWorker, 1}, 0, {});
  EXPECT_EQ(Compact(pod, {"metadata", "finalizers"}), "(none)");
  EXPECT_EQ(
      Compact(MakeClaim(ElasticDlJob(), {Role::kWorker, 1}, "p-1", {}), {"metadata", "finalizers"}),
      "(none)");
}

// The master goes with its namespace, and may go first.
TEST(MakePod, PutsNoFinalizerOnThePodsOfAJobInAConfigMap) {
  const Settings settings{.owner_kind = "ConfigMap"};
  const api::ReplicaId worker{Role::kWorker, 1};
  EXPECT_EQ(Compact(MakePod(MakeJob(), worker, 0, {}), {"metadata", "finalizers"}),
            R"(["trainyard.dev/observed"])");
  EXPECT_EQ(Compact(MakePod(MakeJob(), worker, 0, settings), {"metadata", "finalizers"}), "(none)");
  EXPECT_EQ(Compact(MakeClaim(MakeJob(), worker, "p-1", settings), {"metadata", "finalizers"}),
            "(none)");
}

TEST(MakePod, TellsReplicasOfAnElasticJobWhereTheMasterIsAndWhoTheyAre) {
  api::Job job = MakeJob();
  EXPECT_EQ(EnvironmentOf(MakePod(job, {Role::kWorker, 1}, 0, {}), "MASTER_ADDR"), "(none)");
  job.extensions.elastic = api::Elastic{1, 4};
  const Json pod = MakePod(job, {Role::kWorker, 1}, 2, {});
  EXPECT_EQ(EnvironmentOf(pod, "MASTER_ADDR"), "mnist-master.team-a.svc:50001");
  EXPECT_EQ(EnvironmentOf(pod, "DLROVER_MASTER_ADDR"), "mnist-master.team-a.svc:50001");
  EXPECT_EQ(EnvironmentOf(pod, "WORKER_ID"), std::to_string((2 << 16) + 1));
  EXPECT_EQ(EnvironmentOf(pod, "WORKER_NUM"), "2");
  EXPECT_EQ(EnvironmentOf(pod, "RELAUNCHED_POD"), "true");
  EXPECT_NE(base::CompactJson(pod).find(
                R"({"name":"MY_POD_IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}})"),
            std::string::npos);
  job.extensions.dialect = api::Dialect::kElasticDl;
  EXPECT_EQ(EnvironmentOf(MakePod(job, {Role::kWorker, 1}, 0, {}), "MASTER_ADDR"),
            "elasticdl-mnist-master:50001");
}

TEST(MakePod, GivesEachWorkerThePriorityThatTheJobSays) {
  api::Job job = MakeJob();
  job.extensions.high_priority = {1};
  EXPECT_EQ(Compact(MakePod(job, {Role::kWorker, 0}, 0, {}), {"spec", "priorityClassName"}),
            "\"low\"");
  EXPECT_EQ(Compact(MakePod(job, {Role::kWorker, 1}, 0, {}), {"spec", "priorityClassName"}),
            "\"high\"");
}

TEST(Gang, JoinsVolcanoByAnnotationAndOthersByLabel) {
  const Json volcano = MakePod(MakeJob(), {Role::kWorker, 0}, 0, {.gang_scheduler = "Volcano"});
  EXPECT_EQ(Compact(volcano, {"spec", "schedulerName"}), "\"volcano\"");
  EXPECT_EQ(
      Compact(volcano, {"metadata", "annotations"}),
      R"({"note":"yes","scheduling.k8s.io/group-name":"mnist","volcano.sh/task-spec":"worker"})");
  const Json plugins = MakePod(MakeJob(), {Role::kWorker, 0}, 0, {.gang_scheduler = "kai"});
  EXPECT_EQ(Compact(plugins, {"spec", "schedulerName"}), "\"kai\"");
  EXPECT_EQ(base::StringOr(plugins.at("metadata").at("labels"), "scheduling.x-k8s.io/pod-group"),
            "mnist");
}

}  // namespace
}  // namespace backend::cluster
