#include "io/websocket.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "io/testing/server.h"
#include "io/testing/websocket.h"

namespace io {
namespace {

using namespace std::chrono_literals;
using testing::Connection;
using testing::Frame;
using testing::kBegin, testing::kBinary, testing::kClose, testing::kEnd, testing::kPing;
using testing::Server;
using Opened = base::Result<std::variant<std::unique_ptr<WebSocket>, HttpResponse>>;

void Accept(Connection& connection, const std::string& more = "",
            const std::string& protocol = "two") {
  testing::AcceptWebSocket(connection, protocol, more);
}

Opened Open(const Server& server, size_t most_message = 1 << 20) {
  return WebSocket::Connect({.request = {.url = server.url("/x?a=b"), .headers = {"X-A: b"}},
                             .protocols = {"one", "two"},
                             .timeout = 10s,
                             .most_message = most_message});
}

// What comes until the socket is over: messages, each in brackets, then the error if there is one.
std::string Drain(WebSocket& socket) {
  std::string seen;
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!socket.closed() && std::chrono::steady_clock::now() < end) {
    pollfd wait{.fd = socket.fd(),
                .events = static_cast<short>(POLLIN | (socket.wants_write() ? POLLOUT : 0)),
                .revents = 0};
    if (!socket.more()) poll(&wait, 1, 100);
    const auto went = socket.Advance([&](auto m) { seen += "[" + std::string(m) + "]"; });
    if (!went) return seen + went.error().text().substr(went.error().text().find(": ") + 2);
  }
  return seen;
}

std::string DrainFrom(Server::Handler handler, size_t most_message = 1 << 20) {
  Server server(std::move(handler));
  auto opened = Open(server, most_message);
  if (!opened) return opened.error().text();
  return Drain(*std::get<0>(*opened));
}

TEST(WebSocket, AsksForTheUpgrade) {
  std::string request;
  {
    Server server([&](Connection& connection) {
      request = connection.ReadRequest();
      connection.Answer(400, "");
    });
    ASSERT_TRUE(Open(server));
  }
  EXPECT_TRUE(request.starts_with("GET /x?a=b HTTP/1.1\r\nHost: 127.0.0.1:")) << request;
  EXPECT_TRUE(request.contains("\r\nSec-WebSocket-Protocol: one, two\r\n"));
  EXPECT_TRUE(request.contains("\r\nX-A: b\r\n"));
}

TEST(WebSocket, ReadsMessagesWholeOrInFragments) {
  EXPECT_EQ(DrainFrom([](Connection& connection) {
              Accept(connection, Frame(kBinary, "early"));
              connection.Write(Frame(kBegin, "he") + Frame(kPing, "x") + Frame(kEnd, "llo"));
              connection.Write(Frame(kBinary, std::string(300, 'y')) + Frame(kClose, "\x03\xe8"));
              connection.WaitUntilClosed();
            }),
            "[early][hello][" + std::string(300, 'y') + "]");
}

TEST(WebSocket, TellsWhichProtocolWasChosen) {
  Server server([](Connection& connection) { Accept(connection); });
  auto opened = Open(server);
  ASSERT_TRUE(opened);
  EXPECT_EQ(std::get<0>(*opened)->protocol(), "two");
}

TEST(WebSocket, SendsMaskedMessages) {
  std::string first;
  Server server([&](Connection& connection) {
    Accept(connection);
    while (first.size() < 11) first += connection.ReadSome();
    connection.Write(Frame(kClose, "\x03\xe8"));
    connection.WaitUntilClosed();
  });
  auto opened = Open(server);
  ASSERT_TRUE(opened);
  WebSocket& socket = *std::get<0>(*opened);
  socket.Send("hello");
  EXPECT_EQ(socket.queued(), 5u);
  EXPECT_EQ(Drain(socket), "");
  ASSERT_GE(first.size(), 11u);
  EXPECT_EQ(first.substr(0, 2), "\x82\x85");
  for (size_t i = 0; i < 5; ++i) first[6 + i] = static_cast<char>(first[6 + i] ^ first[2 + i % 4]);
  EXPECT_EQ(first.substr(6, 5), "hello");
}

TEST(WebSocket, ARefusalIsGivenWithItsBody) {
  Server server([](Connection& connection) {
    connection.ReadRequest();
    connection.Answer(403, "because");
  });
  const auto opened = Open(server);
  ASSERT_TRUE(opened);
  const auto& response = std::get<HttpResponse>(*opened);
  EXPECT_EQ(response.status, 403);
  EXPECT_EQ(response.body, "because");
}

TEST(WebSocket, WhatIsNoWebSocketIsAnError) {
  const std::string upgrade = "HTTP/1.1 101 OK\r\nUpgrade: websocket\r\n";
  for (const std::string& answer :
       {std::string(""), std::string("garbage\r\n\r\n"), std::string("HTTP/1.1\r\n\r\n"),
        std::string("HTTP/1.1 x\r\n\r\n"), std::string("HTTP/1.1 99999999999\r\n\r\n"),
        std::string("HTTP/1.1 101 OK\r\n\r\n"), upgrade + "Sec-WebSocket-Accept: x\r\n\r\n",
        upgrade + std::string(100'000, 'x')}) {
    Server server([&](Connection& connection) {
      connection.ReadRequest();
      connection.Write(answer);
    });
    EXPECT_FALSE(Open(server)) << answer.substr(0, 60);
  }
}

TEST(WebSocket, AServerThatSpeaksNoneOfTheProtocolsIsAnError) {
  Server server([](Connection& connection) { Accept(connection, "", "three"); });
  const auto opened = Open(server);
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().text().ends_with("speaks none of the protocols one, two"));
}

TEST(WebSocket, AServerThatDoesNotAnswerIsGivenUp) {
  Server server([](Connection& connection) { connection.WaitUntilClosed(); });
  EXPECT_FALSE(WebSocket::Connect({.request = {.url = server.url()}, .timeout = 50ms}));
}

TEST(WebSocket, ACutConnectionIsAnError) {
  EXPECT_EQ(
      DrainFrom([](Connection& connection) { Accept(connection, Frame(kBinary, "one") + "\x82"); }),
      "[one]the connection was cut");
}

TEST(WebSocket, FramesThatCannotBeAreAnError) {
  const std::string masked = std::string("\x82\x81") + "mask" + "x";
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), masked, Frame(0x83, "x"),
        Frame(kEnd, "continues nothing"), Frame(kBegin, "a") + Frame(kBegin, "b"),
        Frame(0x09, "fragmented ping")}) {
    const std::string seen = DrainFrom([&](Connection& connection) {
      Accept(connection, bytes);
      connection.WaitUntilClosed();
    });
    EXPECT_EQ(seen, "what came is no WebSocket message");
  }
}

TEST(WebSocket, AMessageBeyondItsBoundIsAnError) {
  const std::string seen = DrainFrom(
      [](Connection& connection) {
        Accept(connection);
        for (int i = 0; i < 100; ++i)
          connection.Write(Frame(i == 0 ? kBegin : 0, std::string(100, 'x')));
        connection.WaitUntilClosed();
      },
      1000);
  EXPECT_EQ(seen, "what came is no WebSocket message");
}

TEST(WebSocket, ManyBytesGoBothWaysOverTls) {
  const testing::Authority authority;
  Server server(
      [](Connection& connection) {
        Accept(connection);
        for (int i = 0; i < 300; ++i) connection.Write(Frame(kBinary, std::string(30'000, 'x')));
        connection.Write(Frame(kClose, "\x03\xe8"));
        connection.WaitUntilClosed();
      },
      {.identity = authority.Issue({})});
  auto opened = WebSocket::Connect({.request = {.url = server.url()},
                                    .protocols = {"two"},
                                    .tls = {.ca = authority.certificate()}});
  ASSERT_TRUE(opened) << opened.error().text();
  EXPECT_EQ(Drain(*std::get<0>(*opened)).size(), 300u * 30'002);
}

TEST(WebSocket, AWrongCertificateIsRefused) {
  const testing::Authority authority, other("another authority");
  Server server([](Connection& connection) { Accept(connection); },
                {.identity = authority.Issue({})});
  const auto opened =
      WebSocket::Connect({.request = {.url = server.url()}, .tls = {.ca = other.certificate()}});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind(), base::ErrorKind::kForbidden);
}

}  // namespace
}  // namespace io
