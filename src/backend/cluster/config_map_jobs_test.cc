#include "backend/cluster/config_map_jobs.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "kube/testing.h"

namespace backend::cluster {
namespace {

using base::CompactJson;
using base::Json;
using kube::Request;
using kube::Response;
using kube::testing::J;
using namespace std::chrono_literals;

constexpr const char* kJobs = "/apis/kubeflow.org/v1/namespaces/n/tfjobs";
constexpr const char* kConfigMap =
    R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a-job","namespace":"n","uid":"u","resourceVersion":"7",)"
    R"("labels":{"trainyard.dev/kept":"tfjob","x":"y"}},"data":{"spec":"{\"s\":1}","status":"{\"t\":2}"}})";

class ConfigMapJobsTest : public ::testing::Test {
 protected:
  void Ask(const std::string& method, const std::string& path, const std::string& body = "") {
    door.Send({.method = method, .path = path, .body = body}, 1s,
              [this](base::Result<Response> got) { answer = *std::move(got); });
  }
  const Request& asked() { return behind.asked.front().request; }

  kube::testing::FakeTransport behind;
  ConfigMapJobs door{behind};
  Response answer;
};

TEST_F(ConfigMapJobsTest, AJobIsReadFromItsConfigMap) {
  Ask("GET", std::string(kJobs) + "/a");
  EXPECT_EQ(asked().path, "/api/v1/namespaces/n/configmaps/a-job");
  behind.Reply(200, kConfigMap);
  EXPECT_EQ(
      J(answer.body),
      J(R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"a","namespace":"n",
    "uid":"u","resourceVersion":"7","labels":{"x":"y"}},"spec":{"s":1},"status":{"t":2}})"));
}

TEST_F(ConfigMapJobsTest, ListsAndWatchesSeeJobsOnly) {
  Ask("GET", std::string(kJobs) + "?limit=5&fieldSelector=metadata.name%3Da");
  EXPECT_EQ(asked().path,
            "/api/v1/namespaces/n/configmaps?limit=5&fieldSelector=metadata.name%3Da-job"
            "&labelSelector=trainyard.dev%2Fkept%3Dtfjob");
  behind.Reply(200, fmt::format(R"({{"kind":"ConfigMapList","items":[{}]}})", kConfigMap));
  EXPECT_EQ(base::StringOr(J(answer.body).at("items").at(0), "kind"), "TFJob");

  std::string told;
  const auto stream = door.Open(
      {.path = std::string(kJobs) + "?watch=1"}, 1s, [&](std::string_view bytes) { told += bytes; },
      [](auto) {});
  const std::string event = fmt::format(R"({{"type":"ADDED","object":{}}})", kConfigMap) + "\n";
  behind.StreamSays(event.substr(0, 40));
  EXPECT_EQ(told, "");
  behind.StreamSays(event.substr(40));
  EXPECT_EQ(base::StringOr(J(told).at("object"), "kind"), "TFJob");
}

TEST_F(ConfigMapJobsTest, ANewJobIsANewConfigMap) {
  Ask("POST", std::string(kJobs) + "?fieldManager=me",
      R"({"kind":"TFJob","metadata":{"name":"a","annotations":{"k":"v"}},"spec":{"s":1}})");
  EXPECT_EQ(asked().path, "/api/v1/namespaces/n/configmaps?fieldManager=me");
  EXPECT_EQ(J(asked().body), J(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a-job",
    "annotations":{"k":"v"},"labels":{"trainyard.dev/kept":"tfjob"}},"data":{"spec":"{\"s\":1}"}})"));
}

TEST_F(ConfigMapJobsTest, AStatusIsWrittenOnlyOverWhatItWasDecidedOn) {
  const std::string patch = R"({"metadata":{"resourceVersion":"7"},"status":{"t":null,"u":3}})";
  Ask("PATCH", std::string(kJobs) + "/a/status", patch);
  behind.Reply(200, kConfigMap);
  EXPECT_EQ(asked().method, "PATCH");
  EXPECT_EQ(J(asked().body),
            J(R"({"metadata":{"resourceVersion":"7"},"data":{"status":"{\"u\":3}"}})"));
  behind.Reply(409, R"({"kind":"Status","reason":"Conflict"})");
  EXPECT_EQ(answer.status, 409);
  EXPECT_TRUE(behind.asked.empty());

  Ask("PATCH", std::string(kJobs) + "/a/status",
      R"({"metadata":{"resourceVersion":"6"},"status":{"u":3}})");
  behind.Reply(200, kConfigMap);
  EXPECT_EQ(answer.status, 409);
  EXPECT_TRUE(behind.asked.empty());
}

TEST_F(ConfigMapJobsTest, AWishIsWrittenAgainWhenSomebodyWasQuicker) {
  Ask("PATCH", std::string(kJobs) + "/a",
      R"({"metadata":{"annotations":{"k":"v"}},"spec":{"s":2}})");
  behind.Reply(200, kConfigMap);
  behind.Reply(409, R"({"kind":"Status","reason":"Conflict"})");
  behind.Reply(200, kConfigMap);
  EXPECT_EQ(J(asked().body), J(R"({"metadata":{"annotations":{"k":"v"},"resourceVersion":"7"},
    "data":{"spec":"{\"s\":2}"}})"));
  behind.Reply(200, kConfigMap);
  EXPECT_EQ(answer.status, 200);
}

TEST_F(ConfigMapJobsTest, WhatAJobOwnsIsOwnedByItsConfigMap) {
  Ask("POST", "/api/v1/namespaces/n/pods",
      R"({"metadata":{"ownerReferences":[{"apiVersion":"kubeflow.org/v1","kind":"TFJob","name":"a","uid":"u"},
      {"apiVersion":"v1","kind":"Node","name":"b","uid":"w"}]}})");
  EXPECT_EQ(asked().path, "/api/v1/namespaces/n/pods");
  EXPECT_EQ(J(asked().body), J(R"({"metadata":{"ownerReferences":[
    {"apiVersion":"v1","kind":"ConfigMap","name":"a-job","uid":"u"},
    {"apiVersion":"v1","kind":"Node","name":"b","uid":"w"}]}})"));
}

TEST(ConfigMapJobs, BothFormsSayTheSame) {
  const Json job =
      J(R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"a","namespace":"n",
    "labels":{}},"spec":{"s":[1,{"x":null}]},"status":{"t":2}})");
  EXPECT_EQ(JobFromConfigMap(ConfigMapFromJob(job)), job);
  // Whatever is in it: a ConfigMap may come from anybody.
  for (const char* text :
       {"{}", "[]", "null", R"({"data":{"spec":"{"}})", R"({"metadata":3,"data":[]})"})
    EXPECT_EQ(base::StringOr(JobFromConfigMap(J(text)), "kind"), "TFJob") << text;
}

}  // namespace
}  // namespace backend::cluster
