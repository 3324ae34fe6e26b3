#include "io/http_message.h"

#include <gtest/gtest.h>

#include "io/http_routes.h"

namespace io {
namespace {

const base::Time kNow = *base::ParseTime("2026-11-15T21:49:57.220145Z");

TEST(ToWire, WritesStatusDateLengthAndBody) {
  EXPECT_EQ(ToWire({.body = "ok\n"}, {}, kNow),
            "HTTP/1.1 200 OK\r\n"
            "Date: Sun, 15 Nov 2026 21:49:57 GMT\r\n"
            "Content-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 3\r\n"
            "\r\n"
            "ok\n");
}

TEST(ToWire, AnswersHeadWithTheLengthOnly) {
  const std::string wire = ToWire({.body = "ok\n"}, {.head_only = true}, kNow);
  EXPECT_TRUE(wire.contains("Content-Length: 3\r\n"));
  EXPECT_TRUE(wire.ends_with("\r\n\r\n"));
}

TEST(ToWire, SaysWhenItIsTheLast) {
  EXPECT_TRUE(ToWire({}, {.last = true}, kNow).contains("\r\nConnection: close\r\n"));
}

TEST(ToWire, AHeaderCannotBeSplit) {
  const std::string wire =
      ToWire({.headers = {{"Location", "/a\r\nSet-Cookie: mine=1"}}}, {}, kNow);
  EXPECT_TRUE(wire.starts_with("HTTP/1.1 500 "));
  EXPECT_FALSE(wire.contains("Set-Cookie"));
  EXPECT_TRUE(ToWire({.content_type = "a\nb"}, {}, kNow).starts_with("HTTP/1.1 500 "));
}

ServerRequest Ask(std::string method, std::string path) {
  return {.method = std::move(method), .path = std::move(path)};
}

ServerHandler Table() {
  std::vector<HttpRoute> routes;
  routes.push_back({"GET", "/a", [](const auto&) { return ServerResponse{.body = "get"}; }});
  routes.push_back({"POST", "/a", [](const auto&) { return ServerResponse{.body = "post"}; }});
  routes.push_back({"POST", "/b", [](const auto&) { return ServerResponse{.body = "b"}; }});
  return Routes(std::move(routes));
}

TEST(Routes, ChooseByPathAndMethod) {
  ServerHandler table = Table();
  EXPECT_EQ(table(Ask("GET", "/a")).body, "get");
  EXPECT_EQ(table(Ask("HEAD", "/a")).body, "get");
  EXPECT_EQ(table(Ask("POST", "/a")).body, "post");
}

TEST(Routes, AnswerAnUnknownPathWith404) {
  ServerHandler table = Table();
  for (const char* path : {"/", "/A", "/a/", "/%61", "/b/../a"}) {
    EXPECT_EQ(table(Ask("GET", path)).status, 404) << path;
  }
}

TEST(Routes, AnswerAnotherMethodWith405AndThoseThatThereAre) {
  ServerHandler table = Table();
  for (const char* method : {"DELETE", "PUT", "get", "TRACE", "OPTIONS", "X"}) {
    const ServerResponse response = table(Ask(method, "/a"));
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(response.headers.at(0).second, "GET, HEAD, POST");
  }
  EXPECT_EQ(table(Ask("HEAD", "/b")).headers.at(0).second, "POST");
}

}  // namespace
}  // namespace io
