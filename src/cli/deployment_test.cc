#include "cli/deployment.h"

#include <algorithm>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "cli/master_objects.h"

namespace cli {
namespace {

using base::CompactJson;
using base::Json;

TEST(Deployment, IsMadeInAnOrderThatWorks) {
  std::vector<std::string> spoken;
  for (const Json& object : OperatorObjects({})) spoken.push_back(Spoken(object));
  ASSERT_GE(spoken.size(), 4);
  EXPECT_EQ(spoken[0], "Namespace trainyard-system");
  EXPECT_EQ(spoken[1], "CustomResourceDefinition tfjobs.kubeflow.org");
  EXPECT_EQ(spoken[2], "ServiceAccount trainyard-system/trainyard-operator");
  EXPECT_EQ(spoken.back(), "Deployment trainyard-system/trainyard-operator");
}

TEST(Deployment, AnotherNamespaceAndImageAreSaidEverywhere) {
  std::string text;
  for (const Json& object : OperatorObjects({.name_space = "ml", .image = "registry.example/ty:1"}))
    text += CompactJson(object);
  EXPECT_EQ(text.find("trainyard-system"), std::string::npos);
  EXPECT_EQ(text.find("trainyard:latest"), std::string::npos);
  EXPECT_NE(text.find(R"("namespace":"ml")"), std::string::npos);
  EXPECT_NE(text.find(R"("image":"registry.example/ty:1")"), std::string::npos);
}

TEST(Deployment, StorageComesWithAClaimWhereItIsUsed) {
  for (const char* storage : {"nfs", "hostpath"}) {
    std::vector<std::string> spoken;
    for (const Json& object : OperatorObjects({.storage = storage, .claim_namespace = "team"}))
      spoken.push_back(Spoken(object));
    EXPECT_EQ(std::ranges::count(spoken, fmt::format("PersistentVolumeClaim team/{}", storage)), 1);
    EXPECT_EQ(spoken[0].substr(0, 9), "Namespace");
  }
}

TEST(Master, HasRightsInItsNamespaceAndGoesWithItsJob) {
  const base::JsonObject owner{{"kind", "ConfigMap"}, {"name", "j-job"}};
  const std::vector<Json> objects =
      MasterObjects({.job = "j", .name_space = "n", .image = "i"}, owner);
  std::vector<std::string> spoken;
  for (const Json& object : objects) {
    spoken.push_back(Spoken(object));
    EXPECT_EQ(CompactJson(object.at("metadata").at("ownerReferences")),
              R"([{"kind":"ConfigMap","name":"j-job"}])");
  }
  EXPECT_EQ(spoken, (std::vector<std::string>{"ServiceAccount n/j-master", "Role n/j-master",
                                              "RoleBinding n/j-master", "Job n/j-master"}));
  EXPECT_NE(CompactJson(objects[1]).find("events"), std::string::npos);
}

TEST(Master, UsesTheAccountThatIsNamedAndAsksForNoMoreThanItMay) {
  const std::vector<Json> named =
      MasterObjects({.job = "j", .name_space = "n", .image = "i", .service_account = "sa"}, {});
  ASSERT_EQ(named.size(), 1);
  EXPECT_NE(CompactJson(named[0]).find(R"("serviceAccountName":"sa")"), std::string::npos);
  const std::vector<Json> silent =
      MasterObjects({.job = "j", .name_space = "n", .image = "i", .with_events = false}, {});
  EXPECT_EQ(CompactJson(silent[1]).find("events"), std::string::npos);
}

}  // namespace
}  // namespace cli
