#include "cli/elasticdl_grammar.h"

#include <gtest/gtest.h>

#include "base/base64.h"

namespace cli {
namespace {

using base::CompactJson;
using base::Json;
using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string Resources(const std::string& text) {
  auto read = ParseEdlResources(text);
  return read ? CompactJson(*read) : read.error().text();
}

TEST(EdlResources, AreThoseOfKubernetes) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"cpu=0.2,memory=1024Mi", R"({"cpu":"0.2","memory":"1024Mi"})"},
      {" cpu = 250m , memory = 32Ei ", R"({"cpu":"250m","memory":"32Ei"})"},
      {"cpu=.5", R"({"cpu":".5"})"},
      {"gpu=1", R"({"nvidia.com/gpu":"1"})"},
      {"amd.com/gpu=2", R"({"amd.com/gpu":"2"})"},
      {"nvidia.com/P100-PCIE-16GB-P=1", R"({"nvidia.com/P100-PCIE-16GB-P":"1"})"},
      {"disk=64Mi", R"({"ephemeral-storage":"64Mi"})"},
      {"ephemeral-storage=2G", R"({"ephemeral-storage":"2G"})"},
      {"memory=1K", R"({"memory":"1k"})"},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(Resources(text), expected) << text;
}

TEST(EdlResources, AreRefusedInTheirWords) {
  const std::string memory =
      ": must be a whole number with one of the units E, P, T, G, M, K, Ei, Pi, Ti, Gi, Mi and Ki, "
      "like 1024Mi";
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "'': must be KEY=VALUE"},
      {"cpu", "'cpu': must be KEY=VALUE"},
      {"cpu=1,", "'': must be KEY=VALUE"},
      {"cpu=1,cpu=2", "the resource string contains duplicate resource names: cpu"},
      {"disk=1G,ephemeral-storage=1G",
       "the resource string contains duplicate resource names: ephemeral-storage"},
      {"cpu=-1", "invalid cpu request spec: -1: must be like 0.5, 2 or 500m"},
      {"cpu=1e3", "invalid cpu request spec: 1e3: must be like 0.5, 2 or 500m"},
      {"cpu=0m", "invalid cpu request spec: 0m: must be like 0.5, 2 or 500m"},
      {"cpu=.", "invalid cpu request spec: .: must be like 0.5, 2 or 500m"},
      {"memory=1024", "invalid memory request spec: 1024" + memory},
      {"memory=1.5Gi", "invalid memory request spec: 1.5Gi" + memory},
      {"memory=0Mi", "invalid memory request spec: 0Mi" + memory},
      {"memory=1024MB", "invalid memory request spec: 1024MB" + memory},
      {"memory=Mi", "invalid memory request spec: Mi" + memory},
      {"gpu=0.5", "invalid gpu request spec: 0.5: must be a whole number"},
      {"a_b/gpu=1", "gpu resource name does not have a valid vendor name: a_b/gpu"},
      {"tpu=1",
       "tpu is not in the allowed list of resource types: memory, disk, ephemeral-storage, cpu, "
       "gpu"},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(Resources(text), expected) << text;
}

TEST(EdlVolumes, AreClaimsAndHostPaths) {
  auto read = ParseEdlVolumes(
      "host_path=/h,mount_path=/a,type=Directory; claim_name=c , mount_path=/b,sub_path=s;;");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read,
            (std::vector<EdlVolume>{{.host_path = "/h", .type = "Directory", .mount_path = "/a"},
                                    {.claim_name = "c", .mount_path = "/b", .sub_path = "s"}}));
  EXPECT_TRUE(ParseEdlVolumes("")->empty());
}

TEST(EdlVolumes, ThatCannotBeAreRefused) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"host_path=/h", "a volume needs a mount_path, like mount_path=/data"},
      {"host_path=/h,mount_path=/", "a volume needs a mount_path, like mount_path=/data"},
      {"host_path=/h,mount_path=b", "a volume needs a mount_path, like mount_path=/data"},
      {"mount_path=/a", "a volume has a claim_name or a host_path, and not both"},
      {"claim_name=c,host_path=/h,mount_path=/a",
       "a volume has a claim_name or a host_path, and not both"},
      {"host_path=h,mount_path=/a", "host_path: must begin with /, not 'h'"},
      {"claim_name=c,type=File,mount_path=/a", "type is for a host_path, not for a claim_name"},
      {"host_path=/h,host_path=/h,mount_path=/a", "host_path is given twice in one volume"},
      {"host_path=/h,mount=/a",
       "unknown key 'mount': must be one of claim_name, host_path, type, mount_path and sub_path"},
      {"host_path=/h,mount_path=/a;host_path=/i,mount_path=/a",
       "two volumes have the mount_path /a"},
      {"host_path=,mount_path=/a", "host_path: must not be empty"},
      {"/h:/a", "'/h:/a': must be KEY=VALUE"},
  };
  for (const auto& [text, expected] : table) {
    auto read = ParseEdlVolumes(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().text(), expected);
  }
}

TEST(EdlEnvs, MayHaveCommasInTheirValues) {
  const std::vector<std::pair<std::string, Pairs>> table = {
      {"", {}},
      {"A=1", {{"A", "1"}}},
      {"A=1,B=2", {{"A", "1"}, {"B", "2"}}},
      {"A=1,2,B=3,4", {{"A", "1,2"}, {"B", "3,4"}}},
      {"A=,B=", {{"A", ""}, {"B", ""}}},
      {"A=1,A=2", {{"A", "2"}}},
      {"U=http://h?q=1", {{"U", "http://h?q=1"}}},
      {"U=http://h?q=1,B=a=b", {{"U", "http://h?q=1"}, {"B", "a=b"}}},
      {"P=a/b c", {{"P", "a/b c"}}},
  };
  for (const auto& [text, expected] : table) {
    auto read = ParseEdlEnvs(text);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, expected) << text;
  }
}

TEST(EdlEnvs, WithoutANameAreRefused) {
  EXPECT_EQ(ParseEdlEnvs("hunter2").error().text(), "no '=' in it: must be like A=1,B=2");
  EXPECT_EQ(ParseEdlEnvs("=1").error().text(), "'' is no name of a variable: must be like A=1,B=2");
  EXPECT_EQ(ParseEdlEnvs("A=1,2B=3").error().text(),
            "'2B' is no name of a variable: must be like A=1,B=2");
}

TEST(EdlPriority, OfAFractionTakesWorkersFromBothEnds) {
  const std::vector<std::tuple<std::string, int32_t, std::vector<std::string>>> table = {
      {"", 2, {"", ""}},
      {"high", 2, {"high", "high"}},
      {"low", 1, {"low"}},
      {"0.5", 4, {"high", "low", "low", "high"}},
      {"0.4", 5, {"high", "low", "low", "low", "high"}},
      {"0.5", 3, {"high", "low", "high"}},
      {"0.75", 4, {"high", "high", "low", "high"}},
      {"1", 3, {"high", "high", "high"}},
      {"0", 2, {"low", "low"}},
  };
  for (const auto& [text, workers, expected] : table) {
    auto read = ParseEdlPriority(text, workers);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, expected) << text << " of " << workers;
  }
}

TEST(EdlPriority, OfOtherWordsIsRefused) {
  for (const char* text : {"high=0.5", "1.5", "-0.5", "gold", "nan", "0.5x", " "}) {
    auto read = ParseEdlPriority(text, 4);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(
        read.error().text(),
        "must be high, low, or which part of the workers is high, from 0 to 1 like 0.5, not '" +
            std::string(text) + "'");
  }
}

TEST(AuxParams, KnowOneWord) {
  EXPECT_FALSE(*DisablesRelaunch(""));
  EXPECT_TRUE(*DisablesRelaunch("disable_relaunch=True"));
  EXPECT_FALSE(*DisablesRelaunch(" disable_relaunch = False ; "));
  EXPECT_EQ(DisablesRelaunch("disable_relaunch=yes").error().text(),
            "disable_relaunch: must be True or False, not 'yes'");
  EXPECT_EQ(DisablesRelaunch("a=1").error().text(),
            "unknown parameter 'a': there is disable_relaunch");
}

constexpr std::string_view kSpec = R"({
  "pod_spec": {"labels": {"a": "1"}, "tolerations": [{"key": "t"}]},
  "worker_pod_spec": {"annotations": {"b": "2"}, "affinity": {"nodeAffinity": {}},
                      "env": [{"name": "E", "value": "v"}]},
  "service_spec": {"type": "NodePort"}})";

TEST(EdlClusterSpec, ChangesThePodsThatItNames) {
  const std::string expected =
      R"({"spec":{"containers":[{"name":"x","env":[{"name":"D"},{"name":"E","value":"v"}]}],)"
      R"("tolerations":[{"key":"t"}],"affinity":{"nodeAffinity":{}}},)"
      R"("metadata":{"labels":{"a":"1"},"annotations":{"b":"2"}}})";
  for (const std::string& text : {std::string(kSpec), base::EncodeBase64(kSpec)}) {
    auto spec = EdlClusterSpec::Parse(text);
    ASSERT_TRUE(spec) << spec.error().text();
    base::JsonObject pod =
        base::ParseJson(R"({"spec":{"containers":[{"name":"x","env":[{"name":"D"}]}]}})")
            ->get_object();
    spec->ChangePod("worker", pod);
    EXPECT_EQ(CompactJson(pod), expected);
    base::JsonObject ps = {{"spec", base::JsonObject()}};
    spec->ChangePod("ps", ps);
    EXPECT_EQ(CompactJson(ps),
              R"({"spec":{"tolerations":[{"key":"t"}]},"metadata":{"labels":{"a":"1"}}})");
    base::JsonObject service = {{"spec", base::JsonObject{{"type", "ClusterIP"}}}};
    spec->ChangeService(service);
    EXPECT_EQ(CompactJson(service), R"({"spec":{"type":"NodePort"}})");
  }
}

TEST(EdlClusterSpec, OfTheMasterHasTwoNames) {
  for (const char* key : {"master_pod_spec", "edl-master_pod_spec"}) {
    auto spec = EdlClusterSpec::Parse(std::string(R"({")") + key + R"(":{"labels":{"a":"1"}}})");
    base::JsonObject pod;
    spec->ChangePod("edl-master", pod);
    EXPECT_EQ(CompactJson(pod), R"({"metadata":{"labels":{"a":"1"}}})");
  }
}

TEST(EdlClusterSpec, ThatCannotBeIsRefused) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"!!", "neither a JSON object nor base64 of one"},
      {base::EncodeBase64("[]"), "must be a JSON object"},
      {R"({"worker_pod_specs":{}})",
       "unknown key 'worker_pod_specs': did you mean worker_pod_spec?"},
      {R"({"pod_spec":1})", "pod_spec: must be an object"},
      {R"({"pod_spec":{"toleration":[]}})",
       "pod_spec: unknown key 'toleration': did you mean tolerations?"},
      {R"({"pod_spec":{"env":{}}})", "pod_spec: env: must be a list"},
      {R"({"pod_spec":{"env":[1]}})", "pod_spec: env: must be a list of objects"},
      {R"({"pod_spec":{"labels":{"a":1}}})", "pod_spec: labels: values must be text"},
      {R"({"pod_spec":{"affinity":[]}})", "pod_spec: affinity: must be an object"},
  };
  for (const auto& [text, expected] : table) {
    auto spec = EdlClusterSpec::Parse(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().text(), expected);
  }
  EXPECT_FALSE(EdlClusterSpec::Parse("{"));
}

}  // namespace
}  // namespace cli
