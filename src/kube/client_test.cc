#include "kube/client.h"

#include <atomic>

#include <gtest/gtest.h>

#include "io/testing/server.h"
#include "kube/testing.h"

namespace kube {
namespace {

using base::ErrorKind;
using io::testing::Connection;
using testing::J;
using namespace std::chrono_literals;

// Answers each request with what `answer` says of it.
class ClientTest : public ::testing::Test {
 protected:
  struct Said {
    int status = 200;
    std::string body = "{}";
    std::string headers;
  };

  Client& Ask(
      std::function<Said(const std::string&)> answer,
      std::function<bool()> stopped = [] { return false; }) {
    far = std::make_unique<io::testing::Server>([answer](Connection& connection) {
      for (std::string text; !(text = connection.ReadRequest()).empty();) {
        const Said said = answer(text);
        connection.Answer(said.status, said.body, said.headers);
      }
    });
    server = Server::Connect({.server = far->url("")}).value();
    client.emplace(*server, std::move(stopped));
    return *client;
  }

  std::unique_ptr<io::testing::Server> far;
  std::unique_ptr<Server> server;
  std::optional<Client> client;
};

TEST_F(ClientTest, GetsAnObject) {
  EXPECT_EQ(Ask([](auto) { return Said{.body = R"({"a":1})"}; }).Get("/api/v1/pods"),
            J(R"({"a":1})"));
}

TEST_F(ClientTest, AnErrorSaysWhatWasAsked) {
  const auto answer = Ask([](auto) {
                        return Said{.status = 404, .body = R"({"reason":"NotFound"})"};
                      }).Get("/api/v1/pods?x=secret");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), base::Error(ErrorKind::kNotFound, "GET /api/v1/pods: 404 NotFound"));
}

TEST_F(ClientTest, ListsAllPages) {
  const auto list =
      Ask([](const std::string& text) {
        return text.contains("continue=more")
                   ? Said{.body = R"({"metadata":{},"items":[3]})"}
                   : Said{.body = R"({"metadata":{"continue":"more"},"items":[1,2]})"};
      }).List("/api/v1/pods", "a=b");
  ASSERT_TRUE(list);
  EXPECT_EQ(base::Json(*list), J("[1,2,3]"));
}

TEST_F(ClientTest, CreatesAndPatches) {
  Client& asking = Ask(
      [](const std::string& text) { return Said{.body = base::CompactJson(base::Json(text))}; });
  const auto created = asking.Create("/api/v1/pods", J(R"({"a":1})"));
  const std::string post(created->get_string());
  EXPECT_TRUE(post.starts_with("POST ") && post.contains("Content-Type: application/json\r\n") &&
              post.ends_with(R"({"a":1})"));
  const auto patched = asking.Patch("/x", J(R"({"a":null})"));
  const std::string patch(patched->get_string());
  EXPECT_TRUE(patch.starts_with("PATCH ") &&
              patch.contains("Content-Type: application/merge-patch+json\r\n"));
}

TEST_F(ClientTest, DeletesOneObjectAndNoCollection) {
  std::atomic<int> asked = 0;
  Client& asking = Ask([&](const std::string& text) {
    ++asked;
    EXPECT_TRUE(
        text.ends_with(R"({"propagationPolicy":"Background","preconditions":{"uid":"u"}})"));
    return Said{};
  });
  EXPECT_TRUE(asking.Delete("/api/v1/namespaces/a/pods/b", "u"));
  EXPECT_TRUE(asking.Delete("/api/v1/nodes/n", "u"));
  EXPECT_TRUE(asking.Delete("/apis/kubeflow.org/v1/namespaces/a/tfjobs/b", "u"));
  for (const char* path : {"/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/",
                           "/api/v1/nodes", "/apis/kubeflow.org/v1/tfjobs",
                           "/apis/kubeflow.org/v1/namespaces/a/tfjobs", "/api/v1", "/", ""}) {
    EXPECT_FALSE(asking.Delete(path, "u")) << path;
  }
  EXPECT_EQ(asked, 3);
}

TEST_F(ClientTest, AsksAgainWhenTheServerSaysLater) {
  std::atomic<int> asked = 0;
  const auto answer =
      Ask([&](auto) {
        return ++asked == 1 ? Said{.status = 429, .headers = "Retry-After: 0\r\n"} : Said{};
      }).Get("/x");
  EXPECT_TRUE(answer);
  EXPECT_EQ(asked, 2);
}

TEST_F(ClientTest, StopsWhenTold) {
  std::atomic<bool> asked = false;
  io::testing::Server silent([&](Connection& connection) {
    connection.ReadRequest();
    asked = true;
    connection.WaitUntilClosed();
  });
  const auto door = Server::Connect({.server = silent.url("")}).value();
  const auto answer = Client(*door, [&] { return asked.load(); }).Get("/x");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().text(), "GET /x: interrupted");
}

}  // namespace
}  // namespace kube
