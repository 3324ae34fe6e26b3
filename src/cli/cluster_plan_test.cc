#include "cli/cluster_plan.h"

#include <filesystem>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cli/commands.h"
#include "io/files.h"

namespace cli {
namespace {

using base::CompactJson;
using base::Json;

class ClusterPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cluster-plan-XXXXXX";
    root_ = mkdtemp(name);
    ASSERT_TRUE(io::WriteFile(root_ + "/train.py", "print()\n"));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  base::Result<ClusterPlan> Plan(std::vector<std::string> words) {
    for (std::string& word : words) {
      if (word == "SCRIPT") word = root_ + "/train.py";
      if (word == "DIR") word = root_;
    }
    return MakeClusterPlan(TRY(Parse(Commands().front(), words)));
  }
  // The pod spec of the workers, and the whole of what is made.
  Json Pod(const ClusterPlan& plan) {
    return ObjectsOf(plan, "j", "n")
        .job.at("spec")
        .at("tfReplicaSpecs")
        .at("Worker")
        .at("template")
        .at("spec");
  }

  std::string root_;
};

TEST_F(ClusterPlanTest, AScriptRunsFromItsConfigMapAsAPodThatEveryClusterAdmits) {
  const auto plan = Plan({"SCRIPT", "--", "--epochs", "3"});
  ASSERT_TRUE(plan) << plan.error().text();
  const Json pod = Pod(*plan);
  const Json& container = pod.at("containers").at(0);
  EXPECT_EQ(CompactJson(container.at("command")), R"(["python3","/trainyard/code/train.py"])");
  EXPECT_EQ(CompactJson(container.at("args")), R"(["--epochs","3"])");
  EXPECT_EQ(CompactJson(container.at("securityContext")),
            R"({"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}})");
  EXPECT_TRUE(pod.at("securityContext").at("runAsNonRoot").as_bool());
  std::vector<std::string> kinds;
  for (const Json& object : ObjectsOf(*plan, "j", "n").first)
    kinds.push_back(base::StringOr(object, "kind"));
  EXPECT_EQ(kinds, (std::vector<std::string>{"ConfigMap", "PersistentVolumeClaim"}));
}

TEST_F(ClusterPlanTest, OutputCheckpointsAndLogsAreFoldersOfOneClaim) {
  const auto plan = Plan({"SCRIPT", "--output", "models/run-7"});
  ASSERT_TRUE(plan);
  const ClusterObjects objects = ObjectsOf(*plan, "j", "n");
  EXPECT_EQ(objects.first.size(), 1);
  EXPECT_EQ(objects.job.at("metadata").at("annotations").at("trainyard.dev/output"),
            "models/run-7");
  const std::string mounts = CompactJson(Pod(*plan).at("containers").at(0).at("volumeMounts"));
  for (const char* part : {"output", "checkpoints", "tensorboard"})
    EXPECT_NE(mounts.find(fmt::format(R"("subPath":"run-7/{}")", part)), std::string::npos)
        << mounts;
}

TEST_F(ClusterPlanTest, TheUsersPodIsKeptAndOnlyWhatWasSaidIsChanged) {
  ASSERT_TRUE(io::WriteFile(root_ + "/pod.yaml",
                            "metadata: {labels: {team: a}}\n"
                            "spec:\n  nodeSelector: {gpu: 'yes'}\n  containers:\n"
                            "  - {name: side, image: s}\n"
                            "  - {name: tensorflow, image: own, env: [{name: A, value: b}]}\n"));
  const auto plan = Plan({"SCRIPT", "--pod-file", root_ + "/pod.yaml", "--gpus", "2"});
  ASSERT_TRUE(plan) << plan.error().text();
  const Json pod = Pod(*plan);
  EXPECT_EQ(CompactJson(pod.at("nodeSelector")), R"({"gpu":"yes"})");
  EXPECT_EQ(base::Find(pod, "securityContext"), nullptr);
  EXPECT_EQ(CompactJson(pod.at("containers").at(0)), R"({"name":"side","image":"s"})");
  const Json& training = pod.at("containers").at(1);
  EXPECT_EQ(base::StringOr(training, "image"), "own");
  EXPECT_EQ(base::StringOr(training.at("env").at(0), "name"), "A");
  EXPECT_EQ(CompactJson(training.at("resources")), R"({"limits":{"nvidia.com/gpu":2}})");
  EXPECT_EQ(base::StringOr(Pod(*Plan({"SCRIPT", "--pod-file", root_ + "/pod.yaml", "-i", "mine"}))
                               .at("containers")
                               .at(1),
                           "image"),
            "mine");
}

TEST_F(ClusterPlanTest, SecretsComeByReference) {
  ASSERT_TRUE(io::WriteFile(root_ + "/env", "TOKEN=hunter2\n"));
  const auto plan = Plan({"SCRIPT", "-e", root_ + "/env", "--secret", "aws", "--secret", "hub"});
  ASSERT_TRUE(plan);
  const std::string job = CompactJson(ObjectsOf(*plan, "j", "n").job);
  EXPECT_EQ(job.find("hunter2"), std::string::npos);
  EXPECT_NE(job.find(R"("secretKeyRef":{"name":"j-env","key":"TOKEN"})"), std::string::npos);
  EXPECT_NE(job.find(R"("envFrom":[{"secretRef":{"name":"aws"}},{"secretRef":{"name":"hub"}}])"),
            std::string::npos);
}

TEST_F(ClusterPlanTest, ADirectoryMayEndInASlashOrADot) {
  const std::string name = io::BaseName(root_);
  for (const char* end : {"", "/", "//", "/.", "/./"}) {
    const auto plan = Plan({root_ + end});
    ASSERT_TRUE(plan) << plan.error().text();
    EXPECT_EQ(CompactJson(Pod(*plan).at("containers").at(0).at("command")),
              R"(["python3","/trainyard/code/train.py"])")
        << end;
    EXPECT_EQ(plan->plan.base_name, base::Lower(name)) << end;
  }
}

TEST_F(ClusterPlanTest, ADirectoryThatIsTooMuchIsRunFromItsImage) {
  ASSERT_TRUE(io::WriteFile(root_ + "/data", std::string(2 << 20, 'x')));
  EXPECT_FALSE(Plan({"DIR"}));
  const auto plan = Plan({"DIR", "-i", "mine"});
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->plan.warnings.size(), 1);
  const std::string job = CompactJson(ObjectsOf(*plan, "j", "n").job);
  EXPECT_EQ(job.find("trainyard-code"), std::string::npos);
  EXPECT_NE(job.find("/trainyard/code/train.py"), std::string::npos);
}

TEST_F(ClusterPlanTest, RefusesWhatIsOfThisMachine) {
  for (const char* flag : {"--python=x", "--port=1", "--hang-restart=1m"})
    EXPECT_FALSE(Plan({"SCRIPT", flag})) << flag;
  ASSERT_TRUE(io::WriteFile(root_ + "/pod.yaml", "spec: {containers: []}\n"));
  EXPECT_FALSE(Plan({"SCRIPT", "--pod-file", root_ + "/pod.yaml"}));
}

}  // namespace
}  // namespace cli
