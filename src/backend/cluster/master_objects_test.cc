#include "backend/cluster/master_objects.h"

#include <gtest/gtest.h>

#include "kube/api.h"

namespace backend::cluster {
namespace {

using base::CompactJson;
using base::Json;
using base::JsonObject;

TEST(MasterObjects, HasRightsInItsNamespaceAndGoesWithItsJob) {
  const JsonObject owner{{"kind", "ConfigMap"}, {"name", "j-job"}};
  const std::vector<Json> objects =
      MasterObjects({.job = "j", .name_space = "n", .image = "i"}, owner);
  std::vector<std::string> spoken;
  for (const Json& object : objects) {
    spoken.push_back(base::StringOr(object, "kind") + " " + kube::Metadata(object, "name"));
    EXPECT_EQ(CompactJson(object.at("metadata").at("ownerReferences")),
              R"([{"kind":"ConfigMap","name":"j-job"}])");
  }
  EXPECT_EQ(spoken, (std::vector<std::string>{"ServiceAccount j-master", "Role j-master",
                                              "RoleBinding j-master", "Job j-master"}));
  EXPECT_NE(CompactJson(objects[1]).find("events"), std::string::npos);
}

TEST(MasterObjects, UsesTheAccountThatIsNamedAndAsksForNoMoreThanItMay) {
  const std::vector<Json> named =
      MasterObjects({.job = "j", .name_space = "n", .image = "i", .service_account = "sa"}, {});
  ASSERT_EQ(named.size(), 1);
  EXPECT_NE(CompactJson(named[0]).find(R"("serviceAccountName":"sa")"), std::string::npos);
  const std::vector<Json> silent =
      MasterObjects({.job = "j", .name_space = "n", .image = "i", .with_events = false}, {});
  EXPECT_EQ(CompactJson(silent[1]).find("events"), std::string::npos);
}

// The operator gives away one role, which came with it, and none that it makes up.
TEST(MasterObjects, OfTheOperatorAreBoundToTheRoleThatCameWithIt) {
  const MasterWish wish{.job = "j",
                        .name_space = "n",
                        .image = "i",
                        .own_role = false,
                        .tfjob = true,
                        .elastic = true,
                        .settings = {.cluster_domain = "c.local", .gang_scheduler = "volcano"}};
  const std::vector<Json> objects = MasterObjects(wish, {});
  ASSERT_EQ(objects.size(), 4);
  EXPECT_EQ(
      CompactJson(objects[1].at("roleRef")),
      R"({"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"trainyard-master"})");
  EXPECT_EQ(base::StringOr(objects[2], "kind"), "Service");
  const Json& container = objects[3].at_pointer("/spec/template/spec/containers/0");
  EXPECT_EQ(CompactJson(container.at("args")),
            R"(["master","j","--namespace=n","--tfjob","--gang-scheduler-name=volcano",)"
            R"("--ledger=/var/lib/trainyard"])");
  EXPECT_EQ(CompactJson(container.at("env")),
            R"([{"name":"CUSTOM_CLUSTER_DOMAIN","value":"c.local"}])");
}

TEST(MasterObjects, TheImageIsPulledWithTheSecretsOfTheReplicas) {
  api::Job job;
  job.spec.replicas[api::Role::kWorker].pod_template =
      *base::ParseJson(R"({"spec":{"imagePullSecrets":[{"name":"ours"}]}})");
  const std::vector<Json> objects = MasterObjects(MasterFor(job), {});
  EXPECT_EQ(CompactJson(objects.back().at_pointer("/spec/template/spec/imagePullSecrets")),
            R"([{"name":"ours"}])");
}

TEST(MasterObjects, TheLedgerLiesWhereTheJobKeepsWhatItMakes) {
  api::Job job;
  job.metadata.name = "j";
  job.extensions.elastic = {.min = 1, .max = 4};
  EXPECT_EQ(MasterFor(job).ledger_claim, "");
  job.extensions.output = "claim/some/path";
  EXPECT_EQ(MasterFor(job).ledger_claim, "claim");
  EXPECT_EQ(MasterFor(job).ledger_path, "some/path/ledger");
  job.extensions.output = "s3://bucket/path";
  EXPECT_EQ(MasterFor(job).ledger_claim, "");
}

}  // namespace
}  // namespace backend::cluster
