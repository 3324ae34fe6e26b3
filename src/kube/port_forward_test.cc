#include "kube/port_forward.h"

#include <atomic>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "io/testing/server.h"
#include "io/testing/websocket.h"

namespace kube {
namespace {

using base::Time;
using io::testing::AcceptWebSocket;
using io::testing::Connection;
using io::testing::Frame;
using io::testing::kBinary;
using io::testing::kClose;
using namespace std::chrono_literals;

constexpr Time kStart{1'794'779'400s};
constexpr const char* kProtocol = "v4.channel.k8s.io";

std::string Data(const std::string& text) { return Frame(kBinary, '\0' + text); }
std::string Errors(const std::string& text) { return Frame(kBinary, '\1' + text); }
std::string Ports() { return Data("\x90\x1f") + Errors("\x90\x1f"); }

class PortForwardTest : public ::testing::Test {
 protected:
  void Forward(io::testing::Server::Handler handler) {
    far = std::make_unique<io::testing::Server>(std::move(handler));
    server = Server::Connect({.server = far->url("")}).value();
    forward = PortForward::Listen(*server, {.ns = "n", .pod = "p", .port = 8080}).value();
  }

  io::Fd Connect() {
    io::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET,
                        .sin_port = htons(static_cast<uint16_t>(forward->port())),
                        .sin_addr = {htonl(INADDR_LOOPBACK)},
                        .sin_zero = {}};
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  void RunUntil(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "gave up waiting";
      auto waits = forward->Waits();
      poll(waits.data(), waits.size(), 20);
      forward->Advance(now);
    }
  }

  // Reads what has come to the local side; true at its end.
  bool Reads(const io::Fd& fd, std::string& out) {
    char bytes[65536];
    for (;;) {
      const ssize_t count = recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (count <= 0) return count == 0;
      out.append(bytes, static_cast<size_t>(count));
    }
  }

  Time now = kStart;
  // For what stands behind it; they outlive its threads.
  std::string request;
  std::atomic<size_t> written = 0;
  std::atomic<bool> answer = false, closed = false;
  std::unique_ptr<io::testing::Server> far;
  std::unique_ptr<Server> server;
  std::unique_ptr<PortForward> forward;
};

TEST_F(PortForwardTest, CarriesBytesBothWays) {
  Forward([&](Connection& connection) {
    request = AcceptWebSocket(connection, kProtocol, Ports());
    const std::string message = io::testing::ReadMessage(connection);
    connection.Write(Data("got " + message.substr(1)) + Frame(kClose, "\x03\xe8"));
    connection.WaitUntilClosed();
  });
  const io::Fd local = Connect();
  ASSERT_EQ(send(local.get(), "hello", 5, 0), 5);
  std::string seen;
  RunUntil([&] { return Reads(local, seen); });
  EXPECT_EQ(seen, "got hello");
  EXPECT_EQ(forward->connections(), 0u);
  EXPECT_EQ(forward->trouble(), "");
  far.reset();
  EXPECT_TRUE(request.starts_with("GET /api/v1/namespaces/n/pods/p/portforward?ports=8080 "));
}

TEST_F(PortForwardTest, AnErrorOfThePodIsTold) {
  Forward([&](Connection& connection) {
    AcceptWebSocket(connection, kProtocol, Ports() + Errors("connection refused\n"));
    connection.WaitUntilClosed();
  });
  const io::Fd local = Connect();
  std::string seen;
  RunUntil([&] { return Reads(local, seen); });
  EXPECT_EQ(forward->trouble(), "connection refused\\n");
}

TEST_F(PortForwardTest, ARefusalIsTold) {
  Forward([&](Connection& connection) {
    connection.ReadRequest();
    connection.Answer(404, R"({"reason":"NotFound"})");
  });
  const io::Fd local = Connect();
  std::string seen;
  RunUntil([&] { return Reads(local, seen); });
  EXPECT_EQ(forward->trouble(), "404 NotFound");
}

TEST_F(PortForwardTest, ALocalSideThatDoesNotReadHoldsThePodBack) {
  Forward([&](Connection& connection) {
    AcceptWebSocket(connection, kProtocol, Ports());
    for (int i = 0; i < 2000; ++i) {
      connection.Write(Data(std::string(30'000, 'x')));
      written += 30'000;
    }
    connection.Write(Frame(kClose, "\x03\xe8"));
    connection.WaitUntilClosed();
  });
  const io::Fd local = Connect();
  // It stops once the buffers in between are full.
  size_t last = 0;
  int still = 0;
  RunUntil([&] {
    still = written == last && last > 0 ? still + 1 : 0;
    last = written;
    return still > 20;
  });
  EXPECT_LT(written, 50'000'000u);
  std::string seen;
  RunUntil([&] { return Reads(local, seen); });
  EXPECT_EQ(seen.size(), 60'000'000u);
}

TEST_F(PortForwardTest, ItsEndClosesConnectionsThatAreInFullFlow) {
  Forward([&](Connection& connection) {
    AcceptWebSocket(connection, kProtocol, Ports());
    for (int i = 0; i < 2000; ++i) connection.Write(Data(std::string(30'000, 'x')));
    closed = true;
  });
  const io::Fd local = Connect();
  std::string seen;
  RunUntil([&] {
    Reads(local, seen);
    return seen.size() > 1'000'000;
  });
  forward.reset();
  far.reset();
  EXPECT_TRUE(closed);
}

TEST_F(PortForwardTest, AfterTheLocalSidesLastWordThePodMayStillAnswer) {
  Forward([&](Connection& connection) {
    AcceptWebSocket(connection, kProtocol, Ports());
    io::testing::ReadMessage(connection);
    while (!answer) std::this_thread::sleep_for(1ms);
    connection.Write(Data("late"));
    connection.WaitUntilClosed();
  });
  const io::Fd local = Connect();
  ASSERT_EQ(send(local.get(), "x", 1, 0), 1);
  shutdown(local.get(), SHUT_WR);
  RunUntil([&] { return forward->next().has_value(); });
  answer = true;
  std::string seen;
  RunUntil([&] {
    Reads(local, seen);
    return seen == "late";
  });
  EXPECT_EQ(forward->connections(), 1u);
  now += 6s;
  RunUntil([&] { return forward->connections() == 0; });
}

TEST_F(PortForwardTest, APortThatIsTakenIsAnError) {
  Forward([](Connection&) {});
  const auto second =
      PortForward::Listen(*server, {.ns = "n", .pod = "p", .port = 1}, forward->port());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), base::ErrorKind::kTaken);
}

}  // namespace
}  // namespace kube
