// The kube folder against a real API server, the one that KUBECONFIG names. Run by
// tests/cluster/test_kube.py, which brings one up; without one every test is skipped and says so.
#include <cstdlib>
#include <map>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strings.h"
#include "io/clock.h"
#include "io/process.h"
#include "kube/api.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/exec.h"
#include "kube/kubeconfig.h"
#include "kube/lease.h"
#include "kube/logs.h"
#include "kube/port_forward.h"
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

// KUBE_TEST_RESTART is a command, words with spaces between, that restarts the API server.
TEST_F(ClusterTest, AWatchLivesThroughARestartOfTheServer) {
  const char* command = std::getenv("KUBE_TEST_RESTART");
  if (!command) GTEST_SKIP() << "no way to restart the server: KUBE_TEST_RESTART is not set";
  ASSERT_TRUE(client->Create(ConfigMaps(), ConfigMap("before")));
  Mirror mirror;
  Watch watch(*server, {.path = ConfigMaps(), .label_selector = "t=1"}, mirror, 1);
  const auto until = [&](const std::function<bool()>& condition) {
    PollUntil([&] {
      watch.Advance(io::Now());
      return condition();
    });
  };
  until([&] { return mirror.objects.contains("before"); });
  io::Spawn restart{.env = io::Environment(), .error = 2};
  for (const auto word : base::Split(command, ' ')) restart.argv.emplace_back(word);
  const auto ran = io::RunToItsEnd(restart, kPatience, 1 << 20);
  ASSERT_TRUE(ran && ran->status == 0) << (ran ? ran->output : ran.error().text());
  until([&] { return client->Create(ConfigMaps(), ConfigMap("after")).has_value(); });
  until([&] { return mirror.objects.contains("after"); });
  EXPECT_TRUE(mirror.objects.contains("before"));
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

// --- Events, leases

TEST_F(ClusterTest, EventsAreWrittenAndCounted) {
  const auto made = client->Create(ConfigMaps(), ConfigMap("a"));
  const About about{.api_version = "v1",
                    .kind = "ConfigMap",
                    .ns = ns,
                    .name = "a",
                    .uid = base::StringOr(made->at("metadata"), "uid")};
  Events events(*server, "tfjob-controller");
  const auto flush = [&] {
    PollUntil([&] {
      events.Advance(io::Now());
      return events.idle();
    });
  };
  events.Record(about, "Normal", "Created", "Created pod: a", io::Now());
  flush();
  events.Record(about, "Normal", "Created", "Created pod: a", io::Now());
  events.Record(about, "Warning", "Failed", "Error", io::Now());
  flush();
  EXPECT_EQ(events.dropped(), 0u);
  std::map<std::string, int64_t> counts;
  const auto written = client->List(Path("v1", "events", ns));
  ASSERT_TRUE(written) << written.error().text();
  for (const Json& event : *written) {
    EXPECT_EQ(base::StringOr(event.at("source"), "component"), "tfjob-controller");
    counts[base::StringOr(event, "reason")] = base::IntOr(event, "count");
  }
  EXPECT_EQ(counts, (std::map<std::string, int64_t>{{"Created", 2}, {"Failed", 1}}));
}

TEST_F(ClusterTest, OneLeadsAndAnotherFollowsWhenItLetsGo) {
  Lease first(*server, {.ns = ns, .identity = "first"});
  Lease second(*server, {.ns = ns, .identity = "second"});
  const auto until = [&](const std::function<bool()>& condition) {
    PollUntil([&] {
      first.Advance(io::Now());
      second.Advance(io::Now());
      EXPECT_FALSE(first.leads() && second.leads());
      return condition();
    });
  };
  until([&] { return first.leads() || second.leads(); });
  Lease& leader = first.leads() ? first : second;
  Lease& other = first.leads() ? second : first;
  const base::Time begin = io::Now();
  until([&] { return io::Now() > begin + 5s; });  // it renews
  EXPECT_TRUE(leader.leads());
  leader.Release();
  until([&] { return leader.released() && other.leads(); });
  const auto lease =
      client->Get(Path("coordination.k8s.io/v1", "leases", ns, "trainyard-operator"));
  EXPECT_EQ(base::IntOr(lease->at("spec"), "leaseTransitions"), 1) << *lease;
}

// --- What needs a node: KUBE_TEST_IMAGE names an image with a shell

class NodeTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const char* name = std::getenv("KUBE_TEST_IMAGE");
    if (!name) GTEST_SKIP() << "no node: KUBE_TEST_IMAGE is not set";
    image = name;
  }

  void StartPod(const std::string& script) {
    const Json container = JsonObject{
        {"name", "main"}, {"image", image}, {"command", base::JsonArray{"/bin/sh", "-c", script}}};
    const auto pod = client->Create(
        Path("v1", "pods", ns),
        JsonObject{{"metadata", JsonObject{{"name", "p"}}},
                   {"spec", JsonObject{{"restartPolicy", "Never"},
                                       {"terminationGracePeriodSeconds", 0},
                                       {"containers", base::JsonArray{container}}}}});
    ASSERT_TRUE(pod) << pod.error().text();
  }

  void WaitForPod() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      const auto pod = client->Get(Path("v1", "pods", ns, "p"));
      const std::string phase = base::StringOr(pod->at("status"), "phase");
      if (phase != "Pending") return;
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      server->Poll(100ms);
    }
  }

  // What a command wrote, and its exit status.
  std::pair<std::string, int> RunInPod(const std::vector<std::string>& command,
                                       const std::string& input = "") {
    auto exec =
        Exec::Start(*server, {.ns = ns, .pod = "p", .command = command, .input = !input.empty()});
    EXPECT_TRUE(exec) << exec.error().text();
    if (!exec) return {"", -1};
    (*exec)->Write(input);
    EXPECT_TRUE(input.empty() || (*exec)->CloseInput());
    std::string output;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!(*exec)->status() && std::chrono::steady_clock::now() < end) {
      pollfd wait{.fd = (*exec)->fd(),
                  .events = static_cast<short>(POLLIN | ((*exec)->wants_write() ? POLLOUT : 0)),
                  .revents = 0};
      if (!(*exec)->more()) poll(&wait, 1, 100);
      const auto went = (*exec)->Advance([&](int, std::string_view bytes) { output += bytes; });
      if (!went) {
        ADD_FAILURE() << went.error().text();
        return {output, -1};
      }
    }
    if (!(*exec)->status()) return {output, -2};
    return {output, (*exec)->status()->value_or(-3)};
  }

  std::string image;
};

TEST_F(NodeTest, ALogIsFollowedFromBeforeTheStartToTheEnd) {
  StartPod("for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done");
  std::vector<std::string> lines;
  LogFollow log(*server, {.ns = ns, .pod = "p"},
                [&](std::string_view line, std::string_view) { lines.emplace_back(line); });
  PollUntil([&] {
    log.Advance(io::Now());
    return log.ended();
  });
  EXPECT_FALSE(log.error()) << log.error()->text();
  EXPECT_EQ(lines, (std::vector<std::string>{"line 1", "line 2", "line 3", "line 4", "line 5"}));
  const auto tail = client->Call({.path = LogPath({.ns = ns, .pod = "p", .tail_lines = 2})});
  EXPECT_EQ(tail->body, "line 4\nline 5\n");
}

TEST_F(NodeTest, TheLogOfAPodThatIsNotThereIsAnError) {
  LogFollow log(*server, {.ns = ns, .pod = "none"}, [](auto, auto) {});
  PollUntil([&] {
    log.Advance(io::Now());
    return log.ended();
  });
  EXPECT_EQ(log.error()->kind(), ErrorKind::kNotFound);
}

TEST_F(NodeTest, ACommandRunsInAContainer) {
  StartPod("exec sleep 1000");
  WaitForPod();
  EXPECT_EQ(RunInPod({"/bin/sh", "-c", "echo 'a b'; exit 3"}),
            (std::pair<std::string, int>{"a b\n", 3}));
  EXPECT_EQ(RunInPod({"/bin/sh", "-c", "exit 0"}), (std::pair<std::string, int>{"", 0}));
  // Through the input, whose end the command sees.
  const std::string much(3'000'000, 'x');
  EXPECT_EQ(RunInPod({"wc", "-c"}, much), (std::pair<std::string, int>{"3000000\n", 0}));
  const auto [output, status] = RunInPod({"/bin/sh", "-c", "head -c 5000000 /dev/zero"});
  EXPECT_EQ(status, 0);
  EXPECT_EQ(output.size(), 5'000'000u);
}

TEST_F(NodeTest, ACommandThatDoesNotExistIsAnError) {
  StartPod("exec sleep 1000");
  WaitForPod();
  EXPECT_LT(RunInPod({"/does/not/exist"}).second, 0);
}

TEST_F(NodeTest, APortOfAPodIsAPortHere) {
  StartPod("while :; do { cat >/dev/null & echo hello; } | nc -l -p 8080; done");
  WaitForPod();
  const auto forward = PortForward::Listen(*server, {.ns = ns, .pod = "p", .port = 8080}).value();
  std::string seen;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (seen.empty() && std::chrono::steady_clock::now() < end) {  // nc may not listen yet
    const io::Fd local(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET,
                        .sin_port = htons(static_cast<uint16_t>(forward->port())),
                        .sin_addr = {htonl(INADDR_LOOPBACK)},
                        .sin_zero = {}};
    ASSERT_EQ(connect(local.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    for (bool over = false; !over && std::chrono::steady_clock::now() < end;) {
      auto waits = forward->Waits();
      poll(waits.data(), waits.size(), 50);
      forward->Advance(io::Now());
      char bytes[100];
      const ssize_t count = recv(local.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (count > 0) seen.append(bytes, static_cast<size_t>(count));
      over = count == 0 || !seen.empty();
    }
  }
  EXPECT_EQ(seen, "hello\n") << forward->trouble();
}

TEST_F(NodeTest, AClosedPortIsTold) {
  StartPod("exec sleep 1000");
  WaitForPod();
  const auto forward = PortForward::Listen(*server, {.ns = ns, .pod = "p", .port = 9}).value();
  const io::Fd local(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = htons(static_cast<uint16_t>(forward->port())),
                      .sin_addr = {htonl(INADDR_LOOPBACK)},
                      .sin_zero = {}};
  ASSERT_EQ(connect(local.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  PollUntil([&] {
    forward->Advance(io::Now());
    return !forward->trouble().empty();
  });
  EXPECT_TRUE(forward->trouble().contains("refused")) << forward->trouble();
}

}  // namespace
}  // namespace kube
