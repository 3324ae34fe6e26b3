#include "kube/server.h"

#include <atomic>

#include <gtest/gtest.h>

#include "base/version.h"
#include "io/testing/server.h"
#include "io/testing/temp_dir.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using io::testing::Connection;
using Answered = std::optional<base::Result<Response>>;

constexpr auto kPatience = 20s;

void PollUntil(Server& server, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "gave up waiting";
    server.Poll(100ms);
  }
}

base::Result<Response> Ask(Server& server, Request request) {
  Answered answer;
  server.Send(std::move(request), kPatience, [&](auto result) { answer = std::move(result); });
  EXPECT_FALSE(answer);
  PollUntil(server, [&] { return answer.has_value(); });
  return *answer;
}

std::unique_ptr<Server> Connected(Access access) {
  return Server::Connect(std::move(access)).value();
}

void Echo(Connection& connection) {
  for (std::string text; !(text = connection.ReadRequest()).empty();) connection.Answer(200, text);
}

TEST(Server, SaysWhoItIsAndWhatItWants) {
  io::testing::Server far(Echo);
  const auto server = Connected({.server = far.url("/prefix"), .token = "abc"});
  const auto response =
      Ask(*server, {.method = "POST", .path = "/api?x=1", .content_type = "a/b", .body = "{}"});
  ASSERT_TRUE(response) << response.error().text();
  const std::string& text = response->body;
  EXPECT_TRUE(text.starts_with("POST /prefix/api?x=1 HTTP/1.1\r\n")) << text;
  EXPECT_TRUE(text.contains("\r\nAuthorization: Bearer abc\r\n"));
  EXPECT_TRUE(text.contains("\r\nUser-Agent: trainyard/" + std::string(base::kVersion) + "\r\n"));
  EXPECT_TRUE(text.contains("\r\nContent-Type: a/b\r\n"));
}

TEST(Server, PassesOnRetryAfter) {
  const std::pair<const char*, std::optional<base::Duration>> cases[] = {
      {"Retry-After: 3\r\n", 3s},
      {"Retry-After: 999999\r\n", 1h},
      {"Retry-After: -1\r\n", {}},
      {"Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n", {}},
      {"", {}}};
  for (const auto& [header, wanted] : cases) {
    io::testing::Server far([&](Connection& connection) {
      connection.ReadRequest();
      connection.Answer(429, "", header);
    });
    EXPECT_EQ(Ask(*Connected({.server = far.url("")}), {})->retry_after, wanted) << header;
  }
}

// Accepts the token `two` alone.
void WantsTwo(Connection& connection) {
  for (std::string text; !(text = connection.ReadRequest()).empty();) {
    connection.Answer(text.contains("Bearer two\r\n") ? 200 : 401, "said");
  }
}

TEST(Server, A401IsPassedOnWhenThereAreNoOtherCredentials) {
  io::testing::Server far(WantsTwo);
  EXPECT_EQ(Ask(*Connected({.server = far.url(""), .token = "one"}), {})->status, 401);
}

TEST(Server, AsksAgainWithNewCredentialsAfterA401) {
  const io::testing::TempDir dir;
  io::testing::Server far(WantsTwo);
  const auto server = Connected({.server = far.url(""), .token_file = dir.Write("token", "one")});
  dir.Write("token", "two");
  EXPECT_EQ(Ask(*server, {})->status, 200);
}

TEST(Server, AllThatWereRefusedTogetherAreAskedAgain) {
  const io::testing::TempDir dir;
  io::testing::Server far(WantsTwo);
  const auto server = Connected({.server = far.url(""), .token_file = dir.Write("token", "one")});
  int accepted = 0;
  for (int i = 0; i < 10; ++i) {
    server->Send({}, kPatience, [&](auto result) { accepted += result->status == 200 ? 1 : 0; });
  }
  dir.Write("token", "two");
  PollUntil(*server, [&] { return accepted == 10; });
}

TEST(Server, AsksNoThirdTime) {
  const io::testing::TempDir dir;
  io::testing::Server far(WantsTwo);
  const auto server = Connected({.server = far.url(""), .token_file = dir.Write("token", "one")});
  dir.Write("token", "three");
  EXPECT_EQ(Ask(*server, {})->status, 401);
}

TEST(Server, AStreamIsAskedForAgainAfterA401) {
  const io::testing::TempDir dir;
  io::testing::Server far(WantsTwo);
  const auto server = Connected({.server = far.url(""), .token_file = dir.Write("token", "one")});
  dir.Write("token", "two");
  std::string seen;
  Answered end;
  const auto stream = server->Open(
      {.path = "/x"}, kPatience, [&](auto bytes) { seen += bytes; },
      [&](auto result) { end = std::move(result); });
  PollUntil(*server, [&] { return end.has_value(); });
  EXPECT_EQ((*end)->status, 200);
  EXPECT_EQ(seen, "said");
}

TEST(Server, AnErrorOfTheCredentialsIsAnswered) {
  EXPECT_FALSE(Server::Connect({.server = "http://127.0.0.1:1", .token_file = "/does/not/exist"}));
}

TEST(Server, AStreamIsClosedWithItsObject) {
  std::atomic<bool> closed = false;
  io::testing::Server far([&](Connection& connection) {
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\n\r\nhello");
    connection.WaitUntilClosed();
    closed = true;
  });
  const auto server = Connected({.server = far.url("")});
  std::string seen;
  auto stream = server->Open(
      {.path = "/x"}, kPatience, [&](auto bytes) { seen += bytes; }, [](auto) { FAIL(); });
  PollUntil(*server, [&] { return seen == "hello"; });
  stream.reset();
  PollUntil(*server, [&] { return closed.load(); });
}

TEST(Server, ARefusedStreamEndsWithItsStatus) {
  io::testing::Server far([&](Connection& connection) {
    connection.ReadRequest();
    connection.Answer(403, "no");
  });
  const auto server = Connected({.server = far.url("")});
  Answered end;
  const auto stream = server->Open(
      {.path = "/x"}, kPatience, [](auto) { FAIL(); },
      [&](auto result) { end = std::move(result); });
  PollUntil(*server, [&] { return end.has_value(); });
  EXPECT_EQ((*end)->status, 403);
  EXPECT_EQ((*end)->body, "no");
}

TEST(Server, ShowsTheClientCertificate) {
  const io::testing::Authority authority;
  const auto alice = authority.Issue({.name = "alice"});
  io::testing::Server far(
      [](Connection& connection) {
        connection.ReadRequest();
        connection.Answer(200, connection.peer_name());
      },
      {.identity = authority.Issue({}), .client_ca = authority.certificate()});
  const auto server = Connected(
      {.server = far.url(""),
       .tls = {.ca = authority.certificate(), .certificate = alice.certificate, .key = alice.key}});
  EXPECT_EQ(Ask(*server, {})->body, "alice");
}

}  // namespace
}  // namespace kube
