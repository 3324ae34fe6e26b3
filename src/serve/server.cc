#include "serve/server.h"

#include <cstdio>
#include <thread>

#include <fmt/core.h>

#include "base/strings.h"
#include "io/files.h"
#include "io/http_server.h"
#include "serve/grpc_front.h"
#include "serve/guard.h"
#include "serve/models.h"
#include "serve/rest.h"

namespace serve {
namespace {

using base::Json;
using base::Result;

constexpr int kRefused = 2;
constexpr base::Duration kDrain = std::chrono::seconds(20);  // for requests that are here at a stop
constexpr base::Duration kBlink = std::chrono::milliseconds(10);
constexpr size_t kMostSecret = 64 << 10;

// One line, for a person or as an object.
void Print(bool json, std::string_view key, const Json& value, const std::string& line) {
  fmt::print("{}\n", json ? base::CompactJson(base::JsonObject{{key, value}}) : line);
  std::fflush(stdout);
}

int Refuse(const std::string& text) {
  fmt::print(stderr, "trainyard: {}\n", text);
  return kRefused;
}

std::string InUrl(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

bool IsLoopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

Result<> Configure(const ServerOptions& options, Models& models) {
  if (options.config_file.empty()) {
    models.Configure(options.models);
    return {};
  }
  const std::string text = TRY(io::ReadFile(options.config_file, 1 << 20));
  models.Configure(TRY_AS(options.config_file, ParseConfig(text)));
  return {};
}

}  // namespace

Result<ServerOptions> OptionsFromJson(const Json& json) {
  ServerOptions out;
  for (const Json& each : base::At(json, "models").is_array() ? base::At(json, "models").get_array()
                                                              : base::JsonArray{}) {
    out.models.push_back(
        {.name = base::StringOr(each, "name"), .base_path = base::StringOr(each, "path")});
    if (!IsModelName(out.models.back().name))
      return base::Invalid(
          fmt::format("'{}' is no name for a model: letters, digits and . _ - only",
                      base::OneLine(out.models.back().name)));
  }
  const auto number = [&](std::string_view key, int64_t fallback) {
    return base::IntOr(json, key, fallback);
  };
  out.config_file = base::StringOr(json, "config");
  out.host = base::StringOr(json, "host", out.host);
  out.port = static_cast<uint16_t>(number("port", out.port));
  out.rest_port = static_cast<uint16_t>(number("rest_port", out.rest_port));
  out.most_bytes = static_cast<size_t>(number("most_bytes", int64_t{64} << 20));
  out.poll = std::chrono::milliseconds(number("poll_ms", 1000));
  out.rest_timeout = std::chrono::milliseconds(number("rest_timeout_ms", 30'000));
  if (const std::string file = base::StringOr(json, "token_file"); !file.empty()) {
    out.token = base::Trim(TRY(io::ReadFile(file, kMostSecret)));
    if (out.token.empty()) return base::Invalid(file + ": there is no token in it");
  }
  if (const std::string file = base::StringOr(json, "certificate"); !file.empty()) {
    out.certificate = TRY(io::ReadFile(file, 1 << 20));
    out.key = TRY(io::ReadFile(base::StringOr(json, "key"), kMostSecret));
  }
  out.json = base::BoolOr(json, "json");
  Engine& engine = out.engine;
  engine.program = base::StringOr(json, "program");
  engine.libraries = base::StringOr(json, "libraries");
  engine.threads = static_cast<int>(number("threads", 0));
  engine.runs = static_cast<int>(number("runs", 1));
  engine.batch_all = number("batch", 0) > 0;
  engine.limits.rows = number("batch", engine.limits.rows);
  engine.limits.linger = std::chrono::microseconds(number("linger_us", 0));
  engine.limits.waiting = static_cast<size_t>(number("queue", 1000));
  return out;
}

int Serve(const ServerOptions& options, const std::function<int(base::Duration patience)>& signal) {
  const auto say = [&](const std::string& line) {
    Print(options.json, "message", Json(base::CleanUtf8(line)), line);
  };
  Counters counters;
  const Guard guard(options.token, options.host);
  auto keeper = std::make_unique<Models>(
      options.engine, counters,
      Models::Options{.poll = options.poll, .config_file = options.config_file, .say = say});
  Models& models = *keeper;
  RestFront rest(models, counters, guard, options.rest_timeout, options.most_bytes);
  // The ports first: whoever has them already, has them now.
  auto grpc = GrpcServer::Listen({.host = options.host,
                                  .port = options.port,
                                  .most_bytes = options.most_bytes,
                                  .certificate = options.certificate,
                                  .key = options.key,
                                  .may_reload = guard.has_token() || IsLoopback(options.host)},
                                 models, counters, guard);
  if (!grpc) return Refuse(grpc.error().text());
  std::shared_ptr<const io::TlsIdentity> identity;
  if (!options.certificate.empty()) {
    auto made = io::TlsIdentity::Make(options.certificate, options.key);
    if (!made) return Refuse(made.error().text());
    identity = std::move(*made);
  }
  auto http = io::HttpServer::ListenLater({.address = options.host,
                                           .port = options.rest_port,
                                           .limits = {.body = options.most_bytes},
                                           .connections = 4096,
                                           .identity = identity,
                                           .work_time = options.rest_timeout,
                                           .drain_time = kDrain,
                                           .late = LateResponse(options.rest_timeout)},
                                          [&](io::ServerRequest request, io::Reply reply) {
                                            rest.Handle(std::move(request), std::move(reply));
                                          });
  if (!http) return Refuse(http.error().text());
  if (const auto configured = Configure(options, models); !configured)
    return Refuse(configured.error().text());
  const std::string host = InUrl(options.host);
  const char* scheme = options.certificate.empty() ? "http" : "https";
  Print(options.json, "listening",
        base::JsonObject{{"grpc", fmt::format("{}:{}", host, (*grpc)->port())},
                         {"rest", fmt::format("{}://{}:{}", scheme, host, http->port())}},
        fmt::format("gRPC on {}:{}, REST on {}://{}:{}", host, (*grpc)->port(), scheme, host,
                    http->port()));
  const auto ready = models.WaitUntilReady([&] { return signal(kBlink) != 0; });
  int status = 0;
  if (!ready && signal({}) == 0) {
    status = Refuse(ready.error().text);
  } else {
    while (signal(std::chrono::seconds(10)) == 0) {
    }
    say("stopping: answering the requests that are here");
  }
  models.StopReloads();
  // Both at once: each has clients that wait for the other's models.
  std::jthread stopping([&] { (*grpc)->Stop(kDrain); });
  http->Stop();
  stopping.join();
  keeper.reset();  // its last words go to the fronts, which must still be there
  return status;
}

}  // namespace serve
