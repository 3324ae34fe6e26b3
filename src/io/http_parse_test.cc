#include "io/http_parse.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace io {
namespace {

using State = HttpParser::State;

constexpr HttpParser::Limits kLimits = {.head = 1024, .headers = 10, .body = 100};

// What the bytes amount to: the requests, then why it ended. Given in pieces of `step` bytes.
struct Seen {
  std::vector<ServerRequest> requests;
  State state = State::kIdle;
  int refusal = 0;
  bool operator==(const Seen&) const = default;
};

Seen ReadAll(std::string_view bytes, size_t step = std::string::npos) {
  HttpParser parser(kLimits);
  Seen seen;
  std::string pending;
  while (!bytes.empty() && parser.state() != State::kRefused) {
    pending += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    while (true) {
      pending.erase(0, parser.Put(pending));
      if (parser.state() != State::kDone) break;
      seen.requests.push_back(parser.Take());
    }
  }
  seen.state = parser.state();
  if (seen.state == State::kRefused) seen.refusal = parser.Refusal().status;
  return seen;
}

TEST(HttpParser, ReadsARequest) {
  const Seen seen = ReadAll(
      "POST /v1/models?full=1&x HTTP/1.1\r\n"
      "Host: localhost:8080\r\n"
      "X-Mixed-Case:  spaces around\t\r\n"
      "Content-Length: 3\r\n\r\nabc");
  const ServerRequest want = {.method = "POST",
                              .path = "/v1/models",
                              .query = "full=1&x",
                              .headers = {{"host", "localhost:8080"},
                                          {"x-mixed-case", "spaces around"},
                                          {"content-length", "3"}},
                              .body = "abc"};
  EXPECT_EQ(seen, (Seen{{want}, State::kIdle}));
}

TEST(HttpParser, ReadsTheSameInPiecesOfAnySize) {
  const std::string bytes =
      "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
      "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n1;ext=\"v\"\r\nd\r\n0\r\nTrailer: t\r\n\r\n"
      "GET /d HTTP/1.1\r\nHost: h\r\n\r\n";
  const Seen whole = ReadAll(bytes);
  ASSERT_EQ(whole.requests.size(), 4u);
  EXPECT_EQ(whole.requests[1].body, "hello");
  EXPECT_EQ(whole.requests[2].body, "abcd");
  for (size_t step = 1; step < bytes.size(); ++step) EXPECT_EQ(ReadAll(bytes, step), whole) << step;
}

// "0\r\n" and one byte more make an assertion of Beast 1.81 fail.
TEST(HttpParser, ReadsAnEmptyChunkedBodyByteByByte) {
  const std::string bytes =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  EXPECT_EQ(ReadAll(bytes, 1), ReadAll(bytes));
  EXPECT_EQ(ReadAll(bytes, 1).requests.size(), 1u);
}

TEST(HttpParser, TellsHowFarItIs) {
  HttpParser parser(kLimits);
  EXPECT_EQ(parser.state(), State::kIdle);
  std::string pending = "POST / HTTP/1.1\r\nHo";
  pending.erase(0, parser.Put(pending));
  EXPECT_EQ(parser.state(), State::kHead);
  pending += "st: h\r\nContent-Length: 2\r\n\r\na";
  pending.erase(0, parser.Put(pending));
  EXPECT_EQ(parser.state(), State::kBody);
  EXPECT_EQ(parser.Put("b"), 1u);
  EXPECT_EQ(parser.state(), State::kDone);
}

bool KeepsAlive(std::string_view line, std::string_view header) {
  HttpParser parser(kLimits);
  parser.Put(std::string(line) + "\r\nHost: h\r\n" + std::string(header) + "\r\n");
  EXPECT_EQ(parser.state(), State::kDone);
  return parser.keep_alive();
}

TEST(HttpParser, KeepsAliveAsVersionAndConnectionSay) {
  EXPECT_TRUE(KeepsAlive("GET / HTTP/1.1", ""));
  EXPECT_FALSE(KeepsAlive("GET / HTTP/1.1", "Connection: x, Close\r\n"));
  EXPECT_FALSE(KeepsAlive("GET / HTTP/1.0", ""));
  EXPECT_FALSE(KeepsAlive("GET / HTTP/1.0", "Connection: keep-alive\r\n"));
}

TEST(HttpParser, AsksForContinueOnceAndOnlyIfTheBodyIsAwaited) {
  const std::string head =
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
  HttpParser parser(kLimits);
  EXPECT_FALSE(parser.TakeContinue());
  parser.Put(head);
  EXPECT_TRUE(parser.TakeContinue());
  EXPECT_FALSE(parser.TakeContinue());
  HttpParser whole(kLimits);
  whole.Put(head + "ab");
  EXPECT_FALSE(whole.TakeContinue());
}

TEST(HttpParser, ATrailerIsNoHeader) {
  const Seen seen = ReadAll(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "0\r\nHost: other\r\nAuthorization: none\r\n\r\n");
  ASSERT_EQ(seen.requests.size(), 1u);
  EXPECT_EQ(seen.requests[0].headers.size(), 2u);
}

TEST(HttpParser, RefusesWhatCanBeUnderstoodInTwoWays) {
  const std::string start = "POST / HTTP/1.1\r\n", host = "Host: h\r\n";
  const std::vector<std::string> cases = {
      // lines
      "GET / HTTP/1.1\nHost: h\n\n",
      "GET / HTTP/1.1\r\nHost: h\n\r\n",
      "GET / HTTP/1.1\rHost: h\r\r",
      "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
      start + host + "X: a\r\n folded\r\n\r\n",
      start + host + "X:\r\n\tfolded\r\n\r\n",
      start + " Host: h\r\n\r\n",
      // request line
      "GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET / HTTP/1.1 \r\nHost: h\r\n\r\n",
      "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET /\r\nHost: h\r\n\r\n",
      "GET / HTTP/2.0\r\nHost: h\r\n\r\n",
      "GET / HTTP/0.9\r\nHost: h\r\n\r\n",
      "GET / http/1.1\r\nHost: h\r\n\r\n",
      "G(T / HTTP/1.1\r\nHost: h\r\n\r\n",
      "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
      "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n",
      "GET /\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9),
      // Host
      start + "\r\n",
      start + host + host + "\r\n",
      start + "Host:\r\n\r\n",
      start + "Host: a b\r\n\r\n",
      start + "Host: a,b\r\n\r\n",
      start + "Host: a/b\r\n\r\n",
      start + "Host: user@h\r\n\r\n",
      "GET / HTTP/1.0\r\n\r\n",
      // headers
      start + "Host : h\r\n\r\n",
      start + host + ": x\r\n\r\n",
      start + host + "No colon\r\n\r\n",
      start + host + std::string("X: a\0b\r\n\r\n", 10),
      start + host + "X: a\rb\r\n\r\n",
      start + host + "X: \x7f\r\n\r\n",
      // length
      start + host + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab",
      start + host + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
      start + host + "Content-Length: 2, 2\r\n\r\nab",
      start + host + "Content-Length: -1\r\n\r\n",
      start + host + "Content-Length: +2\r\n\r\nab",
      start + host + "Content-Length: 0x2\r\n\r\nab",
      start + host + "Content-Length:\r\n\r\n",
      start + host + "Content-Length: 18446744073709551616\r\n\r\n",
      start + host + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      start + host + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
      // encoding
      start + host + "Transfer-Encoding: gzip\r\n\r\n",
      start + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      start + host + "Transfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n",
      start + host + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
      start + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      start + host + "Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nab",
      start + host + "Transfer-Encoding:\r\n\r\n",
      "POST / HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      start + host + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
      start + host + "Transfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n",
      start + host + "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
      start + host + "Transfer-Encoding: chunked\r\n\r\n2\nab\n0\n\n\r\n",
      start + host + "Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
  };
  for (const std::string& bytes : cases) {
    EXPECT_EQ(ReadAll(bytes), (Seen{{}, State::kRefused, 400})) << bytes;
    // In pieces it may wait for the end of a line instead, but takes nothing either.
    EXPECT_EQ(ReadAll(bytes, 1).requests, std::vector<ServerRequest>()) << bytes;
  }
}

TEST(HttpParser, TakesNothingBehindWhatItRefused) {
  const Seen seen = ReadAll("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(seen, (Seen{{}, State::kRefused, 400}));
}

TEST(HttpParser, RefusesAHeadOverTheLimitHoweverItComes) {
  const std::string line = "GET / HTTP/1.1\r\nHost: h\r\n";
  const std::string fits = line + "X: " + std::string(1024 - line.size() - 7, 'x') + "\r\n\r\n";
  ASSERT_EQ(fits.size(), 1024u);
  const std::string too_large = line + "X: " + std::string(1024, 'x') + "\r\n\r\n";
  const std::string one_more = line + "X: " + std::string(1024 - line.size() - 6, 'x') + "\r\n\r\n";
  for (size_t step : {size_t{1}, size_t{7}, size_t{512}, std::string::npos}) {
    EXPECT_EQ(ReadAll(fits, step).requests.size(), 1u) << step;
    EXPECT_EQ(ReadAll(one_more, step).refusal, 431) << step;
    EXPECT_EQ(ReadAll(too_large, step).refusal, 431) << step;
    EXPECT_EQ(ReadAll("GET /" + std::string(2000, 'x'), step).refusal, 431) << step;
    EXPECT_EQ(ReadAll(std::string(2000, 'x'), step).refusal, 431) << step;
  }
}

TEST(HttpParser, RefusesLinesThatComeOneByOneWithoutEnd) {
  std::string bytes = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 9; ++i) bytes += "X: " + std::string(200, 'x') + "\r\n";
  for (size_t step : {size_t{1}, size_t{205}}) EXPECT_EQ(ReadAll(bytes, step).refusal, 431) << step;
}

TEST(HttpParser, RefusesTooManyHeaders) {
  std::string bytes = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 10; ++i) bytes += "X: x\r\n";
  EXPECT_EQ(ReadAll(bytes + "\r\n").refusal, 431);
}

TEST(HttpParser, RefusesABodyOverTheLimitBeforeItComes) {
  const std::string start = "POST / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(ReadAll(start + "Content-Length: 101\r\n\r\n").refusal, 413);
  EXPECT_EQ(ReadAll(start + "Transfer-Encoding: chunked\r\n\r\n65\r\na").refusal, 413);
  std::string chunks = start + "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i) chunks += "a\r\n0123456789\r\n";
  EXPECT_EQ(ReadAll(chunks).refusal, 413);
  EXPECT_EQ(ReadAll(start + "Content-Length: 100\r\n\r\n" + std::string(100, 'x')).requests.size(),
            1u);
}

TEST(HttpParser, RefusesChunkLinesAndTrailersWithoutEnd) {
  const std::string start = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (size_t step : {size_t{1}, size_t{100}}) {
    EXPECT_EQ(ReadAll(start + "1;" + std::string(2000, 'x'), step).refusal, 400) << step;
    EXPECT_EQ(ReadAll(start + "1;a=\"" + std::string(2000, '\n'), step).refusal, 400) << step;
    EXPECT_EQ(ReadAll(start + "0\r\nX: " + std::string(2000, 'x'), step).refusal, 400) << step;
  }
}

}  // namespace
}  // namespace io
