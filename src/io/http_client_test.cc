#include "io/http_client.h"

#include <atomic>
#include <optional>

#include <gtest/gtest.h>
#include <unistd.h>

#include "io/testing/server.h"

namespace io {
namespace {

using namespace std::chrono_literals;
using base::ErrorKind;
using testing::Authority;
using testing::Connection;
using testing::Server;
using Answered = std::optional<base::Result<HttpResponse>>;

// The time after which a test gives up; nothing is expected to take it.
constexpr auto kPatience = 20s;

void PollUntil(HttpClient& client, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "gave up waiting";
    client.Poll(100ms);
  }
}

base::Result<HttpResponse> Fetch(HttpClient& client, HttpRequest request,
                                 base::Duration timeout = kPatience) {
  Answered answer;
  client.Send(std::move(request), timeout, [&](auto result) { answer = std::move(result); });
  PollUntil(client, [&] { return answer.has_value(); });
  if (!answer) return std::unexpected(base::Error(ErrorKind::kInternal, "gave up"));
  return *std::move(answer);
}

// Answers every request of a connection with what was asked.
void Echo(Connection& connection) {
  for (;;) {
    const std::string request = connection.ReadRequest();
    if (request.empty()) return;
    connection.Answer(200, request, "X-Thing:  seen \r\n");
  }
}

Server::Handler Says(std::string bytes) {
  return [bytes](Connection& connection) {
    connection.ReadRequest();
    connection.Write(bytes);
  };
}

TEST(HttpClient, SendsMethodHeadersAndBodyAndReadsTheAnswer) {
  Server server(Echo);
  HttpClient client({});
  const auto response = Fetch(client, {.method = "PATCH",
                                       .url = server.url("/a/../b?x=%2F"),
                                       .headers = {"Content-Type: application/json", "X-A: b"},
                                       .body = std::string("{\0}", 3)});
  ASSERT_TRUE(response) << response.error().text();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->Header("x-thing"), "seen");
  EXPECT_TRUE(response->body.starts_with("PATCH /a/../b?x=%2F HTTP/1.1\r\n")) << response->body;
  EXPECT_TRUE(response->body.contains("\r\nX-A: b\r\n"));
  EXPECT_TRUE(response->body.ends_with(std::string("\r\n\r\n{\0}", 7)));
  EXPECT_FALSE(response->body.contains("Expect"));
}

TEST(HttpClient, UsesAConnectionAgain) {
  Server server(Echo);
  HttpClient client({});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Fetch(client, {.url = server.url()}));
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClient, SendsAgainWhenAKeptConnectionWasClosed) {
  Server server([](Connection& connection) {
    connection.ReadRequest();
    connection.Answer(200, "");
  });
  HttpClient client({});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Fetch(client, {.url = server.url()}));
  EXPECT_EQ(server.connections(), 5);
}

TEST(HttpClient, AnswersComeFromPollOnly) {
  HttpClient client({});
  bool answered = false;
  client.Send({.url = "ftp://x/\n"}, 1s, [&](auto) { answered = true; });
  EXPECT_FALSE(answered);
  PollUntil(client, [&] { return answered; });
}

TEST(HttpClient, RunsNoMoreRequestsAtOnceThanTold) {
  std::atomic<int> now = 0, most = 0;
  Server server([&](Connection& connection) {
    while (!connection.ReadRequest().empty()) {
      most = std::max<int>(most, ++now);
      std::this_thread::sleep_for(1ms);
      --now;
      connection.Answer(200, "");
    }
  });
  HttpClient client({.requests_at_once = 3});
  int answers = 0;
  for (int i = 0; i < 60; ++i) {
    client.Send({.url = server.url()}, kPatience, [&](auto result) { answers += result ? 1 : 0; });
  }
  PollUntil(client, [&] { return answers == 60; });
  EXPECT_LE(most, 3);
  EXPECT_LE(server.connections(), 3);
}

TEST(HttpClient, ARequestThatNeverGetsItsTurnEndsInTime) {
  Server server([](Connection& connection) { connection.WaitUntilClosed(); });
  HttpClient client({.requests_at_once = 1});
  client.Send({.url = server.url()}, kPatience, [](auto) {});
  const auto second = Fetch(client, {.url = server.url()}, 50ms);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().text(), "not sent, as others were before it, within 0.05 s");
}

TEST(HttpClient, GivesUpOnAServerThatDoesNotAnswer) {
  Server server([](Connection& connection) { connection.WaitUntilClosed(); });
  HttpClient client({});
  const auto response = Fetch(client, {.url = server.url()}, 50ms);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::kUnavailable);
  EXPECT_TRUE(response.error().text().ends_with("no answer within 0.05 s"));
}

TEST(HttpClient, ATrickleDoesNotOutliveTheTimeout) {
  Server server([](Connection& connection) {
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    for (int i = 0; i < 200; ++i) {
      connection.Write("x");
      std::this_thread::sleep_for(5ms);
    }
  });
  HttpClient client({});
  EXPECT_FALSE(Fetch(client, {.url = server.url()}, 100ms));
}

TEST(HttpClient, RefusesABodyBeyondItsBound) {
  for (const std::string head :
       {"Content-Length: 100000\r\n\r\n", "\r\n", "Transfer-Encoding: chunked\r\n\r\n186a0\r\n"}) {
    Server server(Says("HTTP/1.1 200 OK\r\n" + head + std::string(100'000, 'x')));
    HttpClient client({.most_body = 5000});
    const auto response = Fetch(client, {.url = server.url()});
    ASSERT_FALSE(response);
    EXPECT_TRUE(response.error().text().ends_with("the answer has more than 5000 bytes"));
  }
}

TEST(HttpClient, RefusesHeadersBeyondTheirBound) {
  std::string headers;
  for (int i = 0; i < 10'000; ++i) headers += "X-Header: some value\r\n";
  Server server(Says("HTTP/1.1 200 OK\r\n" + headers + "\r\n"));
  HttpClient client({});
  const auto response = Fetch(client, {.url = server.url()});
  ASSERT_FALSE(response);
  EXPECT_TRUE(response.error().text().contains("more than 65536 bytes of headers"));
}

TEST(HttpClient, AHalfAnswerIsAnError) {
  for (const std::string bytes :
       {"", "HTTP/1.1", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "SSH-2.0-OpenSSH\r\n",
        "<html>\r\n\r\n", "\0\1\2\3"}) {
    Server server(Says(bytes));
    HttpClient client({});
    const auto response = Fetch(client, {.url = server.url()});
    EXPECT_FALSE(response) << bytes;
  }
}

TEST(HttpClient, FollowsNoRedirect) {
  Server server(Says("HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"));
  HttpClient client({});
  const auto response = Fetch(client, {.url = server.url()});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 302);
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClient, IgnoresProxiesOfTheEnvironment) {
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
  Server server(Echo);
  HttpClient client({});
  EXPECT_TRUE(Fetch(client, {.url = server.url()}));
  unsetenv("http_proxy");
  unsetenv("ALL_PROXY");
}

TEST(HttpClient, GoesThroughTheProxyThatItWasGiven) {
  Server proxy(Echo);
  HttpClient client({.proxy = proxy.url()});
  const auto response = Fetch(client, {.url = "http://nowhere.invalid:81/x"});
  ASSERT_TRUE(response);
  EXPECT_TRUE(response->body.starts_with("GET http://nowhere.invalid:81/x HTTP/1.1\r\n"));
}

TEST(HttpClient, SpeaksOnlyHttp) {
  HttpClient client({});
  for (const char* url : {"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://x", "", "http://"}) {
    const auto response = Fetch(client, {.url = url});
    ASSERT_FALSE(response) << url;
    EXPECT_EQ(response.error().kind(), ErrorKind::kInvalid) << response.error().text();
  }
}

TEST(HttpClient, RefusesALineBreakInAHeader) {
  Server server(Echo);
  HttpClient client({});
  const auto response =
      Fetch(client, {.url = server.url(), .headers = {"Authorization: a\r\nX-Injected: b"}});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::kInvalid);
  EXPECT_FALSE(response.error().text().contains("Injected"));
}

TEST(HttpClient, TellsWhenNobodyListens) {
  int port = 0;
  {
    Server server(Echo);
    port = server.port();
  }
  HttpClient client({});
  const auto response = Fetch(client, {.url = "http://127.0.0.1:" + std::to_string(port)});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::kUnavailable);
}

TEST(HttpClient, ACancelledRequestIsNotAnswered) {
  Server server([](Connection& connection) { connection.WaitUntilClosed(); });
  HttpClient client({.requests_at_once = 1});
  const auto fail = [](auto) { FAIL(); };
  const auto running = client.Send({.url = server.url()}, 20ms, fail);
  const auto waiting = client.Send({.url = server.url()}, 20ms, fail);
  client.Poll(1ms);
  client.Cancel(running);
  client.Cancel(waiting);
  client.Cancel(running);
  EXPECT_FALSE(Fetch(client, {.url = server.url()}, 60ms));
}

TEST(HttpClient, WakeEndsTheWait) {
  HttpClient client({});
  std::jthread other([&] { client.Wake(); });
  client.Poll(60s);
}

TEST(HttpClient, AnExtraDescriptorEndsTheWait) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  pollfd watched{.fd = read_end.get(), .events = POLLIN, .revents = 0};
  HttpClient client({});
  client.Poll(0ms, {&watched, 1});
  EXPECT_EQ(watched.revents, 0);
  write_end.reset();
  client.Poll(60s, {&watched, 1});
  EXPECT_EQ(watched.revents, POLLHUP);
}

// --- Streams

TEST(HttpClient, AStreamHandsOutBytesAsTheyCome) {
  std::atomic<bool> go_on = false;
  Server server([&](Connection& connection) {
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    while (!go_on) std::this_thread::sleep_for(1ms);
    connection.Write("3\r\ntwo\r\n0\r\n\r\n");
  });
  HttpClient client({});
  std::string seen;
  Answered end;
  client.Open(
      {.url = server.url()}, kPatience, [&](auto bytes) { seen += bytes; },
      [&](auto result) { end = std::move(result); });
  PollUntil(client, [&] { return seen == "one"; });
  EXPECT_FALSE(end);
  go_on = true;
  PollUntil(client, [&] { return end.has_value(); });
  EXPECT_EQ(seen, "onetwo");
  ASSERT_TRUE(*end);
  EXPECT_EQ((*end)->status, 200);
  EXPECT_EQ((*end)->body, "");
}

TEST(HttpClient, AStreamThatIsRefusedEndsWithTheBodyOfTheRefusal) {
  Server server([](Connection& connection) {
    connection.ReadRequest();
    connection.Answer(410, "too old");
  });
  HttpClient client({});
  Answered end;
  client.Open(
      {.url = server.url()}, kPatience, [](auto) { FAIL(); },
      [&](auto result) { end = std::move(result); });
  PollUntil(client, [&] { return end.has_value(); });
  ASSERT_TRUE(*end);
  EXPECT_EQ((*end)->status, 410);
  EXPECT_EQ((*end)->body, "too old");
}

TEST(HttpClient, ASilentStreamEnds) {
  Server server([](Connection& connection) {
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 20; ++i) {  // longer than the silence allowed, but not silent
      connection.Write("1\r\nx\r\n");
      std::this_thread::sleep_for(20ms);
    }
    connection.WaitUntilClosed();
  });
  HttpClient client({});
  std::string seen;
  Answered end;
  client.Open(
      {.url = server.url()}, 300ms, [&](auto bytes) { seen += bytes; },
      [&](auto result) { end = std::move(result); });
  PollUntil(client, [&] { return end.has_value(); });
  EXPECT_EQ(seen, std::string(20, 'x'));
  ASSERT_FALSE(*end);
  EXPECT_TRUE(end->error().text().ends_with("nothing came within 0.3 s"));
}

TEST(HttpClient, AStreamMayBeCancelledFromItsOwnCallback) {
  Server server(Says("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"));
  HttpClient client({});
  int calls = 0;
  HttpClient::Id id = 0;
  id = client.Open(
      {.url = server.url()}, kPatience,
      [&](auto) {
        ++calls;
        client.Cancel(id);
      },
      [](auto) { FAIL(); });
  PollUntil(client, [&] { return calls == 1; });
  client.Poll(0ms);
  EXPECT_EQ(calls, 1);
}

TEST(HttpClient, ACallbackMayBeginTheNextRequest) {
  Server server(Echo);
  HttpClient client({});
  int left = 20;
  std::function<void()> next = [&] {
    client.Send({.url = server.url()}, kPatience, [&](auto) {
      if (--left > 0) next();
    });
  };
  next();
  PollUntil(client, [&] { return left == 0; });
}

TEST(HttpClient, StreamsDoNotTakeTheTurnOfRequests) {
  Server server([](Connection& connection) {
    if (connection.ReadRequest().starts_with("GET /stream")) {
      connection.Write("HTTP/1.1 200 OK\r\n\r\n");
      connection.WaitUntilClosed();
    }
    connection.Answer(200, "");
  });
  HttpClient client({.requests_at_once = 1, .streams_at_once = 3});
  int refused = 0;
  for (int i = 0; i < 4; ++i) {
    client.Open(
        {.url = server.url("/stream")}, kPatience, [](auto) {},
        [&](auto result) { refused += result ? 0 : 1; });
  }
  EXPECT_TRUE(Fetch(client, {.url = server.url()}));
  EXPECT_EQ(refused, 1);
}

// --- TLS

struct TlsCase {
  testing::ServerOptions server;
  Tls client;
};

base::Result<HttpResponse> FetchOverTls(const TlsCase& tls, std::string host = "127.0.0.1") {
  Server server(
      [](Connection& connection) {
        connection.ReadRequest();
        connection.Answer(200, "hello " + connection.peer_name());
      },
      tls.server);
  HttpClient client({.tls = tls.client});
  return Fetch(client, {.url = "https://" + host + ":" + std::to_string(server.port())});
}

void ExpectNotAccepted(const base::Result<HttpResponse>& response, const std::string& why) {
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::kForbidden);
  EXPECT_TRUE(response.error().text().contains("certificate is not accepted"));
  EXPECT_TRUE(response.error().text().contains(why)) << response.error().text();
}

TEST(HttpClientTls, TrustsTheAuthorityGiven) {
  const Authority authority;
  const auto response = FetchOverTls(
      {.server = {.identity = authority.Issue({})}, .client = {.ca = authority.certificate()}});
  ASSERT_TRUE(response) << response.error().text();
  EXPECT_EQ(response->body, "hello ");
}

TEST(HttpClientTls, RefusesAnotherAuthority) {
  const Authority authority, other("another authority");
  ExpectNotAccepted(FetchOverTls({.server = {.identity = authority.Issue({})},
                                  .client = {.ca = other.certificate()}}),
                    "");
  ExpectNotAccepted(FetchOverTls({.server = {.identity = authority.Issue({})}, .client = {}}), "");
}

TEST(HttpClientTls, RefusesAnAuthorityThatOnlyHasTheName) {
  const Authority authority("the authority"), forged("the authority");
  EXPECT_FALSE(FetchOverTls(
      {.server = {.identity = forged.Issue({})}, .client = {.ca = authority.certificate()}}));
}

TEST(HttpClientTls, RefusesAnExpiredCertificate) {
  const Authority authority;
  const auto expired = authority.Issue({.valid_from_days = -10, .valid_days = 5});
  ExpectNotAccepted(
      FetchOverTls({.server = {.identity = expired}, .client = {.ca = authority.certificate()}}),
      "expired");
}

TEST(HttpClientTls, RefusesACertificateOfAnotherName) {
  const Authority authority;
  const auto other = authority.Issue({.name = "other.example", .address = "10.0.0.1"});
  const TlsCase tls{.server = {.identity = other}, .client = {.ca = authority.certificate()}};
  ExpectNotAccepted(FetchOverTls(tls), "127.0.0.1");
  ExpectNotAccepted(FetchOverTls(tls, "localhost"), "localhost");
}

TEST(HttpClientTls, ChecksTheServerNameInsteadOfTheHostWhenToldTo) {
  const Authority authority;
  const auto other = authority.Issue({.name = "kubernetes.default", .address = ""});
  TlsCase tls{.server = {.identity = other},
              .client = {.ca = authority.certificate(), .server_name = "kubernetes.default"}};
  const auto response = FetchOverTls(tls);
  EXPECT_TRUE(response) << response.error().text();
  tls.client.server_name = "other.example";
  ExpectNotAccepted(FetchOverTls(tls), "other.example");
}

TEST(HttpClientTls, RefusesTlsOlderThanOnePointTwo) {
  const Authority authority;
  EXPECT_FALSE(FetchOverTls({.server = {.identity = authority.Issue({}), .old_tls = true},
                             .client = {.ca = authority.certificate()}}));
}

TEST(HttpClientTls, SkipsTheCheckOnlyWhenToldTo) {
  const Authority authority;
  EXPECT_TRUE(FetchOverTls(
      {.server = {.identity = authority.Issue({.name = "x"})}, .client = {.skip_verify = true}}));
}

TEST(HttpClientTls, ShowsItsOwnCertificate) {
  const Authority authority, people("people");
  const auto alice = people.Issue({.name = "alice"});
  const auto response = FetchOverTls(
      {.server = {.identity = authority.Issue({}), .client_ca = people.certificate()},
       .client = {
           .ca = authority.certificate(), .certificate = alice.certificate, .key = alice.key}});
  ASSERT_TRUE(response) << response.error().text();
  EXPECT_EQ(response->body, "hello alice");
}

TEST(HttpClientTls, AKeyThatIsNoneIsAnErrorThatDoesNotShowIt) {
  const Authority authority;
  const auto alice = authority.Issue({.name = "alice"});
  const auto response = FetchOverTls({.server = {.identity = authority.Issue({})},
                                      .client = {.ca = authority.certificate(),
                                                 .certificate = alice.certificate,
                                                 .key = "-----BEGIN PRIVATE KEY-----\ncanary\n"}});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::kInvalid);
  EXPECT_FALSE(response.error().text().contains("canary"));
}

TEST(HttpClientTls, AuthoritiesThatAreNoneAreAnError) {
  const Authority authority;
  const auto response =
      FetchOverTls({.server = {.identity = authority.Issue({})}, .client = {.ca = "garbage"}});
  ASSERT_FALSE(response);
  EXPECT_NE(response.error().kind(), ErrorKind::kUnavailable) << response.error().text();
}

TEST(HttpClientTls, AServerThatSpeaksNoTlsIsAnError) {
  Server server([](Connection& connection) {
    connection.ReadSome();
    connection.Write("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  HttpClient client({});
  EXPECT_FALSE(Fetch(client, {.url = "https://127.0.0.1:" + std::to_string(server.port())}));
}

TEST(HttpClientTls, NewConnectionsUseANewIdentity) {
  const Authority authority;
  Server server(
      [](Connection& connection) {
        while (!connection.ReadRequest().empty()) connection.Answer(200, connection.peer_name());
      },
      {.identity = authority.Issue({}), .client_ca = authority.certificate()});
  const auto tls = [&](const std::string& name) {
    const auto pair = authority.Issue({.name = name});
    return Tls{.ca = authority.certificate(), .certificate = pair.certificate, .key = pair.key};
  };
  HttpClient client({.tls = tls("alice")});
  EXPECT_EQ(Fetch(client, {.url = server.url()})->body, "alice");
  client.set_tls(tls("bob"));
  EXPECT_EQ(Fetch(client, {.url = server.url()})->body, "bob");
}

}  // namespace
}  // namespace io
