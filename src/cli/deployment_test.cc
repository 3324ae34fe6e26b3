#include "cli/deployment.h"

#include <algorithm>

#include <fmt/core.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cli
