#include "cli/other_operator.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

using base::Json;

Json Parse(const std::string& text) {
  auto json = base::ParseJson(text);
  CHECK(json);
  return *json;
}

// training-operator as v1.9 deploys it, with these members of its container.
OtherOperator Deployed(const std::string& container, int replicas = 1) {
  return OtherOperator(Parse(R"({"metadata":{"name":"training-operator","namespace":"kubeflow"},)"
                             R"("spec":{"replicas":)" +
                             std::to_string(replicas) +
                             R"(,"template":{"spec":{"containers":[{"name":"training-operator")" +
                             container + "}]}}}}"));
}

TEST(OtherOperator, LooksAfterTfJobsUnlessItIsToldOtherwise) {
  EXPECT_TRUE(Deployed("").Runs());
  EXPECT_TRUE(Deployed(R"(,"args":["--enable-scheme=mpijob","--enable-scheme","TFJob"])").Runs());
  EXPECT_FALSE(Deployed(R"(,"args":["-enable-scheme=mpijob"])").Runs());
  EXPECT_FALSE(Deployed("", 0).Runs());
}

TEST(OtherOperator, PassesOnWhatItWasTold) {
  DeploymentWish wish;
  Deployed(R"(,"command":["/manager","--gang-scheduler-name=volcano"],)"
           R"("args":["--namespace","team","--kube-api-qps=50"],)"
           R"("env":[{"name":"CUSTOM_CLUSTER_DOMAIN","value":"cluster.local"},)"
           R"({"name":"MY_POD_NAME","valueFrom":{}}])")
      .CopySettings(wish);
  EXPECT_EQ(wish.flags,
            (std::vector<std::string>{"--gang-scheduler-name=volcano", "--namespace=team"}));
  EXPECT_EQ(wish.variables,
            (std::map<std::string, std::string>{{"CUSTOM_CLUSTER_DOMAIN", "cluster.local"}}));
  const Json deployment = OperatorObjects(wish).back();
  const Json& container = deployment.at_pointer("/spec/template/spec/containers/0");
  EXPECT_EQ(container.at("args"),
            Parse(R"(["operator","--leader-elect","--master-image","trainyard:latest",)"
                  R"("--gang-scheduler-name=volcano","--namespace=team"])"));
  EXPECT_EQ(container.at("env"),
            Parse(R"([{"name":"CUSTOM_CLUSTER_DOMAIN","value":"cluster.local"}])"));
}

TEST(OtherOperator, StandsDownAndComesBackWithAsManyPodsAsBefore) {
  const std::vector<Change> changes = Deployed("", 3).StandDown({});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].path, "/apis/apps/v1/namespaces/kubeflow/deployments/training-operator");
  EXPECT_EQ(changes[0].patch, Parse(R"({"spec":{"replicas":0}})"));
  EXPECT_EQ(changes[0].back, Parse(R"({"spec":{"replicas":3}})"));
  EXPECT_TRUE(Deployed("", 0).StandDown({}).empty());
}

TEST(OtherOperator, StaysForOtherKinds) {
  const std::vector<Change> changes =
      Deployed(R"(,"args":["--enable-scheme","tfjob","--leader-elect","--enable-scheme=mpijob"])")
          .StandDown({{"MPIJob", "mpijob", 1}, {"PyTorchJob", "pytorchjob", 0}});
  ASSERT_EQ(changes.size(), 1u);
  constexpr const char* kArgs = "/spec/template/spec/containers/0/args";
  EXPECT_EQ(changes[0].patch.at_pointer(kArgs),
            Parse(R"(["--leader-elect","--enable-scheme=mpijob","--enable-scheme=pytorchjob"])"));
  EXPECT_EQ(changes[0].back.at_pointer(kArgs),
            Parse(R"(["--enable-scheme","tfjob","--leader-elect","--enable-scheme=mpijob"])"));
}

}  // namespace
}  // namespace cli
