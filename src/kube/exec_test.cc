#include "kube/exec.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "io/testing/server.h"
#include "io/testing/websocket.h"

namespace kube {
namespace {

using base::ErrorKind;
using io::testing::AcceptWebSocket;
using io::testing::Connection;
using io::testing::Frame;
using io::testing::kBinary;
using io::testing::kClose;
using namespace std::chrono_literals;

TEST(ExecStatus, IsTheExitStatusOfTheCommand) {
  EXPECT_EQ(ReadExecStatus(R"({"status":"Success"})"), 0);
  EXPECT_EQ(ReadExecStatus(R"({"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[
      {"reason":"ExitCode","message":"3"}]}})"),
            3);
}

TEST(ExecStatus, IsAnErrorWhenItCouldNotBeRun) {
  const auto status = ReadExecStatus(R"({"status":"Failure","message":"no such\nprogram"})");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "no such\\nprogram");
  for (const char* text : {"", "x", "[]", "{}", R"({"reason":"NonZeroExitCode"})",
                           R"({"reason":"NonZeroExitCode","details":{"causes":5}})",
                           R"({"reason":"NonZeroExitCode","details":{"causes":[
                               {"reason":"ExitCode","message":"99999999999999999999"}]}})",
                           R"({"reason":"NonZeroExitCode","details":{"causes":[
                               {"reason":"ExitCode","message":"0"}]}})"}) {
    EXPECT_FALSE(ReadExecStatus(text)) << text;
  }
}

std::string Channel(char number, const std::string& text) { return Frame(kBinary, number + text); }

struct Ran {
  std::string output, errors;
  base::Result<int> status = 0;
};

Ran RunAgainst(io::testing::Server::Handler handler) {
  io::testing::Server far(std::move(handler));
  const auto server = Server::Connect({.server = far.url("")}).value();
  auto exec =
      Exec::Start(*server, {.ns = "n", .pod = "p", .command = {"echo", "a b"}, .input = true});
  Ran ran;
  if (!exec) return {.status = std::unexpected(exec.error())};
  (*exec)->Write("typed");
  (*exec)->CloseInput();
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!(*exec)->status() && std::chrono::steady_clock::now() < end) {
    pollfd wait{.fd = (*exec)->fd(),
                .events = static_cast<short>(POLLIN | ((*exec)->wants_write() ? POLLOUT : 0)),
                .revents = 0};
    if (!(*exec)->more()) poll(&wait, 1, 100);
    const auto went = (*exec)->Advance(
        [&](int fd, std::string_view bytes) { (fd == 1 ? ran.output : ran.errors) += bytes; });
    if (!went) return {ran.output, ran.errors, std::unexpected(went.error())};
  }
  ran.status = (*exec)->status().value();
  return ran;
}

TEST(Exec, GivesOutputAndStatus) {
  std::string request, first, second;
  const Ran ran = RunAgainst([&](Connection& connection) {
    request = AcceptWebSocket(connection, "v5.channel.k8s.io", Channel(1, "") + Channel(2, ""));
    first = io::testing::ReadMessage(connection);
    second = io::testing::ReadMessage(connection);
    connection.Write(Channel(1, "out") + Channel(2, "err") + Channel(9, "?") + Frame(kBinary, "") +
                     Channel(3, R"({"status":"Success"})") + Frame(kClose, "\x03\xe8"));
    connection.WaitUntilClosed();
  });
  EXPECT_EQ(ran.output, "out");
  EXPECT_EQ(ran.errors, "err");
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(
      request.starts_with("GET /api/v1/namespaces/n/pods/p/exec?stdout=true&stderr=true&"
                          "stdin=true&command=echo&command=a%20b HTTP/1.1\r\n"))
      << request;
  EXPECT_EQ(first, std::string("\0typed", 6));
  EXPECT_EQ(second, std::string("\xff\0", 2));
}

TEST(Exec, ARefusalHasItsKind) {
  const Ran ran = RunAgainst([](Connection& connection) {
    connection.ReadRequest();
    connection.Answer(403, R"({"reason":"Forbidden","message":"no"})");
  });
  ASSERT_FALSE(ran.status);
  EXPECT_EQ(ran.status.error(),
            base::Error(ErrorKind::kForbidden, "exec in pod p: 403 Forbidden: no"));
}

TEST(Exec, AConnectionThatEndsFirstIsAnError) {
  for (const std::string& end :
       {std::string(), Frame(kClose, "\x03\xe8"), std::string("garbage")}) {
    const Ran ran = RunAgainst([&](Connection& connection) {
      AcceptWebSocket(connection, "v4.channel.k8s.io", Channel(1, "out"));
      connection.Write(end);
    });
    EXPECT_FALSE(ran.status);
    EXPECT_EQ(ran.output, "out");
  }
}

}  // namespace
}  // namespace kube
