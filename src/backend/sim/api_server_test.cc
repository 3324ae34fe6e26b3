// What the rest of the simulator leans on most. tests/cluster/test_conformance.py compares the
// whole of it with a real server.
#include "backend/sim/api_server.h"

#include <gtest/gtest.h>

#include "backend/sim/api_object.h"
#include "backend/sim/collector.h"

namespace backend::sim {
namespace {

using base::Json;
using namespace std::chrono_literals;

constexpr const char* kMerge = "application/merge-patch+json";
constexpr const char* kStrategic = "application/strategic-merge-patch+json";
constexpr const char* kPodsPath = "/api/v1/namespaces/default/pods";
const std::string kPod = std::string(kPodsPath) + "/a";
constexpr const char* kJobsPath = "/apis/kubeflow.org/v1/namespaces/default/tfjobs";

class ApiServerTest : public ::testing::Test {
 protected:
  kube::Response Ask(const std::string& method, const std::string& path,
                     const std::string& body = "", const std::string& type = "") {
    return server.Serve({.method = method, .path = path, .content_type = type, .body = body});
  }
  Json Made(const std::string& path, const std::string& body) {
    const kube::Response response = Ask("POST", path, body);
    EXPECT_EQ(response.status, 201) << response.body;
    return base::ParseJson(response.body).value();
  }
  Json MakePod(const std::string& metadata = "") {
    return Made(kPodsPath, R"({"metadata":{"name":"a")" + metadata +
                               R"(},"spec":{"containers":[{"name":"c","image":"i:1"}]}})");
  }
  Json MakeJob(const std::string& name = "job") {
    return Made(kJobsPath,
                R"({"kind":"TFJob","apiVersion":"kubeflow.org/v1","metadata":{"name":")" + name +
                    R"("},"spec":{"tfReplicaSpecs":{}}})");
  }
  std::vector<std::string> Told(Watcher& watcher) {
    std::vector<std::string> out;
    while (auto line = server.Next(watcher, server.store().version())) {
      const Json event = base::ParseJson(*line).value();
      out.push_back(base::StringOr(event, "type") + " " + NameOf(*base::Find(event, "object")));
    }
    return out;
  }

  Agenda agenda{1, base::Time(1'800'000'000s)};
  Random random{1};
  ApiServer server{agenda};
};

TEST_F(ApiServerTest, AStatusThatRestsOnAnOldVersionIsRefused) {
  const std::string version = VersionTextOf(MakeJob());
  const std::string patch =
      R"({"metadata":{"resourceVersion":")" + version + R"("},"status":{"attempt":1}})";
  const std::string path = std::string(kJobsPath) + "/job/status";
  EXPECT_EQ(Ask("PATCH", path, patch, kMerge).status, 200);
  EXPECT_EQ(Ask("PATCH", path, patch, kMerge).status, 409);
}

TEST_F(ApiServerTest, AChangeThatChangesNothingIsNoNewVersion) {
  MakePod();
  const Version before = server.store().version();
  EXPECT_EQ(Ask("PATCH", kPod, R"({"metadata":{"labels":{}}})", kMerge).status, 200);
  EXPECT_EQ(server.store().version(), before);
}

TEST_F(ApiServerTest, ADeletionMeansOneUidAndNoOther) {
  MakePod();
  EXPECT_EQ(Ask("DELETE", kPod, R"({"preconditions":{"uid":"another"}})").status, 409);
  EXPECT_TRUE(server.store().Get(kPods, "default/a"));
}

TEST_F(ApiServerTest, APodOnANodeStaysUntilItsKubeletConfirms) {
  MakePod();
  Ask("POST", kPod + "/binding", R"({"metadata":{"name":"a"},"target":{"name":"n"}})");
  Ask("DELETE", kPod);
  EXPECT_EQ(GraceOf(*server.store().Get(kPods, "default/a")), 30);
  Ask("DELETE", kPod, R"({"gracePeriodSeconds":0})");
  EXPECT_FALSE(server.store().Get(kPods, "default/a"));
}

TEST_F(ApiServerTest, AFinalizerHoldsAPodUntilItIsTaken) {
  MakePod(R"(,"finalizers":["a.dev/x"])");
  Ask("DELETE", kPod);
  EXPECT_TRUE(IsDeleting(*server.store().Get(kPods, "default/a")));
  EXPECT_EQ(Ask("POST", kPodsPath,
                R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}})")
                .status,
            409);
  Ask("PATCH", kPod, R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a.dev/x"]}})",
      kStrategic);
  EXPECT_FALSE(server.store().Get(kPods, "default/a"));
}

TEST_F(ApiServerTest, APatchForAnotherUidIsInvalid) {
  MakePod();
  EXPECT_EQ(Ask("PATCH", kPod, R"({"metadata":{"uid":"another"}})", kStrategic).status, 422);
}

TEST_F(ApiServerTest, AWatchTellsOfWhatComesIntoSightAndLeavesIt) {
  auto watcher = server.Watch({.path = std::string(kPodsPath) + "?watch=1&labelSelector=app%3Da"});
  ASSERT_TRUE(watcher);
  MakePod();
  EXPECT_EQ(Told(*watcher), std::vector<std::string>{});
  Ask("PATCH", kPod, R"({"metadata":{"labels":{"app":"a"}}})", kMerge);
  Ask("PATCH", kPod, R"({"metadata":{"annotations":{"x":"y"}}})", kMerge);
  Ask("PATCH", kPod, R"({"metadata":{"labels":{"app":"b"}}})", kMerge);
  EXPECT_EQ(Told(*watcher), (std::vector<std::string>{"ADDED a", "MODIFIED a", "DELETED a"}));
}

TEST_F(ApiServerTest, AWatchFromBeforeTheCompactionIsToldSo) {
  MakePod();
  const std::string path = std::string(kPodsPath) + "?watch=1&resourceVersion=2";
  server.Compact(server.store().version());
  auto watcher = server.Watch({.path = path});
  ASSERT_TRUE(watcher);
  const auto line = server.Next(*watcher, server.store().version());
  ASSERT_TRUE(line);
  EXPECT_NE(line->find("\"code\":410"), std::string::npos);
  EXPECT_FALSE(server.Next(*watcher, server.store().version()));
}

TEST_F(ApiServerTest, TheSecondPageIsOfTheVersionOfTheFirst) {
  MakeJob("a");
  MakeJob("c");
  const Json first = base::ParseJson(Ask("GET", std::string(kJobsPath) + "?limit=1").body).value();
  MakeJob("b");
  const Json second = base::ParseJson(Ask("GET", std::string(kJobsPath) + "?limit=5&continue=" +
                                                     base::StringOr(MetaOf(first), "continue"))
                                          .body)
                          .value();
  ASSERT_EQ(ArrayAt(second, "items").size(), 1u);
  EXPECT_EQ(NameOf(ArrayAt(second, "items")[0]), "c");
}

TEST_F(ApiServerTest, ReadsOfThePastDoNotSeeWhatCameLater) {
  MakeJob("a");
  const Version then = server.store().version();
  MakeJob("b");
  const Json list = base::ParseJson(server.Serve({.path = kJobsPath}, then).body).value();
  EXPECT_EQ(ArrayAt(list, "items").size(), 1u);
}

TEST_F(ApiServerTest, WhatBelongsToNobodyIsCollected) {
  Collector collector(agenda, server, random);
  const Json job = MakeJob();
  MakePod(R"(,"ownerReferences":[{"apiVersion":"kubeflow.org/v1","kind":"TFJob","name":"job",)"
          R"("uid":")" +
          UidOf(job) + R"(","controller":true}])");
  agenda.RunUntil(agenda.now() + 10s);
  EXPECT_TRUE(server.store().Get(kPods, "default/a"));
  Ask("DELETE", std::string(kJobsPath) + "/job");
  agenda.RunUntil(agenda.now() + 10s);
  EXPECT_FALSE(server.store().Get(kPods, "default/a"));
}

}  // namespace
}  // namespace backend::sim
