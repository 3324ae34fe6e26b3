// The kube folder against a real API server, the one that KUBECONFIG names. Run by
// tests/cluster/test_kube.py, which brings one up; without one every test is skipped and says so.
#include <cstdlib>
#include <map>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "io/clock.h"
#include "kube/api.h"
#include "kube/client.h"
#include "kube/kubeconfig.h"
#include "kube/watch.h"

namespace kube {
namespace {

using base::ErrorKind;
using base::Json;
using base::JsonObject;
using namespace std::chrono_literals;

constexpr auto kPatience = 60s;

class ClusterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::getenv("KUBECONFIG")) GTEST_SKIP() << "no cluster: KUBECONFIG is not set";
    auto access = FindAccess(Where::FromEnvironment(), io::Now());
    ASSERT_TRUE(access) << access.error().text();
    auto connected = Server::Connect(*std::move(access));
    ASSERT_TRUE(connected) << connected.error().text();
    server = *std::move(connected);
    client.emplace(*server);
    const auto made = client->Create(
        Path("v1", "namespaces"), JsonObject{{"metadata", JsonObject{{"generateName", "kube-"}}}});
    ASSERT_TRUE(made) << made.error().text();
    ns = base::StringOr(made->at("metadata"), "name");
  }

  void TearDown() override {
    if (client && !ns.empty()) {
      EXPECT_TRUE(client->Delete(Path("v1", "namespaces", "", ns)));
    }
  }

  std::string ConfigMaps(const std::string& name = "") const {
    return Path("v1", "configmaps", ns, name);
  }

  static Json ConfigMap(const std::string& name, const std::string& value = "x") {
    return JsonObject{{"metadata", JsonObject{{"name", name}, {"labels", JsonObject{{"t", "1"}}}}},
                      {"data", JsonObject{{"key", value}}}};
  }

  void PollUntil(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "gave up waiting";
      server->Poll(50ms);
    }
  }

  std::unique_ptr<Server> server;
  std::optional<Client> client;
  std::string ns;
};

TEST_F(ClusterTest, AnObjectIsCreatedReadPatchedAndDeleted) {
  const auto made = client->Create(ConfigMaps(), ConfigMap("a"));
  ASSERT_TRUE(made) << made.error().text();
  Json wanted = *made;
  wanted.at("data") = JsonObject{{"other", "y"}};
  ASSERT_TRUE(client->Patch(ConfigMaps("a"), MergePatch(*made, wanted)));
  EXPECT_EQ(client->Get(ConfigMaps("a"))->at("data"), Json(JsonObject{{"other", "y"}}));
  const auto wrong = client->Delete(ConfigMaps("a"), "00000000-0000-0000-0000-000000000000");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind(), ErrorKind::kTaken);
  EXPECT_TRUE(client->Delete(ConfigMaps("a"), base::StringOr(made->at("metadata"), "uid")));
  EXPECT_EQ(client->Get(ConfigMaps("a")).error().kind(), ErrorKind::kNotFound);
}

TEST_F(ClusterTest, RefusalsHaveTheirKind) {
  ASSERT_TRUE(client->Create(ConfigMaps(), ConfigMap("a")));
  EXPECT_EQ(client->Create(ConfigMaps(), ConfigMap("a")).error().kind(), ErrorKind::kTaken);
  EXPECT_EQ(client->Create(ConfigMaps(), ConfigMap("No_Name")).error().kind(), ErrorKind::kInvalid);
  const auto stale = client->Patch(
      ConfigMaps("a"),
      JsonObject{{"metadata", JsonObject{{"resourceVersion", "1"}}}, {"data", nullptr}});
  EXPECT_EQ(stale.error().kind(), ErrorKind::kTaken);
}

TEST_F(ClusterTest, AWrongTokenIsForbidden) {
  Access access = server->access();
  access.tls.certificate.clear();
  access.tls.key.clear();
  access.token = "canary";
  const auto stranger = Server::Connect(access).value();
  const auto answer = Client(*stranger).Get(ConfigMaps());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::kForbidden);
  EXPECT_FALSE(answer.error().text().contains("canary"));
}

TEST_F(ClusterTest, AnotherAuthorityIsNotTrusted) {
  Access access = server->access();
  access.tls.ca.clear();
  const auto stranger = Server::Connect(access).value();
  const auto answer = Client(*stranger).Get(ConfigMaps());
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().text().contains("certificate is not accepted"));
}

// Keeps what it was told: name to value.
struct Mirror : Watch::Sink {
  void ListBegin() override { ++lists, objects.clear(); }
  void ListEnd(Version) override {}
  void Apply(const Json& object) override {
    objects[base::StringOr(object.at("metadata"), "name")] =
        base::StringOr(object.at("data"), "key");
  }
  void Remove(const Json& object) override {
    objects.erase(base::StringOr(object.at("metadata"), "name"));
  }
  void Trouble(const base::Error& error) override { troubles.push_back(error.text()); }
  int lists = 0;
  std::map<std::string, std::string> objects;
  std::vector<std::string> troubles;
};

TEST_F(ClusterTest, AWatchMirrorsTheCollection) {
  using Objects = std::map<std::string, std::string>;
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(client->Create(ConfigMaps(), ConfigMap(name)));
  }
  Mirror mirror;
  Watch watch(*server, {.path = ConfigMaps(), .label_selector = "t=1", .page = 2}, mirror, 1);
  const auto mirrors = [&](const Objects& wanted) {
    PollUntil([&] {
      watch.Advance(io::Now());
      return watch.synced() && mirror.objects == wanted;
    });
  };
  mirrors({{"a", "x"}, {"b", "x"}, {"c", "x"}});
  ASSERT_TRUE(client->Patch(ConfigMaps("b"), JsonObject{{"data", JsonObject{{"key", "y"}}}}));
  ASSERT_TRUE(client->Delete(ConfigMaps("a")));
  ASSERT_TRUE(client->Create(ConfigMaps(), ConfigMap("d")));
  mirrors({{"b", "y"}, {"c", "x"}, {"d", "x"}});
  EXPECT_EQ(mirror.lists, 1);
  EXPECT_EQ(mirror.troubles, std::vector<std::string>{});
}

TEST_F(ClusterTest, AListInManyPagesIsWhole) {
  int made = 0;
  for (int i = 0; i < 1200; ++i) {
    server->Send({.method = "POST",
                  .path = ConfigMaps(),
                  .content_type = "application/json",
                  .body = base::CompactJson(ConfigMap(fmt::format("c{}", i)))},
                 kPatience, [&](auto answer) { made += answer && answer->status == 201 ? 1 : 0; });
  }
  const auto begin = std::chrono::steady_clock::now();
  PollUntil([&] { return made == 1200; });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("1200 objects created, {:.0f}/s\n", 1200 / took.count());
  const auto list = client->List(ConfigMaps(), "t=1");
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_EQ(list->size(), 1200u);
}

}  // namespace
}  // namespace kube
