#include "kube/server.h"

#include <chrono>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "base/strings.h"
#include "base/version.h"
#include "io/clock.h"

namespace kube {
namespace {

using base::Duration;
using base::Result;
using std::chrono::steady_clock;

constexpr int64_t kMostRetryAfter = 3600;

// In seconds; dates, which API servers do not send, are passed over.
std::optional<Duration> RetryAfter(const io::HttpResponse& response) {
  const auto seconds = base::ParseInt(response.Header("retry-after"));
  if (!seconds || *seconds < 0) return std::nullopt;
  return std::chrono::seconds(std::min(*seconds, kMostRetryAfter));
}

}  // namespace

struct Server::Call {
  Request request;
  Duration patience;
  steady_clock::time_point begin = steady_clock::now();
  Data data;  // of a stream
  Answer answer;
  bool is_stream = false;
  bool renewed = false;     // asked for the second time
  uint64_t generation = 0;  // of the credentials it was sent with
  io::HttpClient::Id id = 0;
  bool closed = false;
  std::optional<base::Error> failure;
};

class Server::OpenStream : public Stream {
 public:
  OpenStream(Server& server, std::shared_ptr<Call> call)
      : server_(server), call_(std::move(call)) {}
  ~OpenStream() override {
    call_->closed = true;
    server_.client_.Cancel(call_->id);
  }

 private:
  Server& server_;
  std::shared_ptr<Call> call_;
};

Server::Server(Credentials credentials, size_t requests_at_once)
    : credentials_(std::move(credentials)),
      shown_generation_(credentials_.generation()),
      client_({.tls = credentials_.tls(),
               .proxy = credentials_.access().proxy,
               .requests_at_once = requests_at_once}) {}

Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::Connect(Access access, size_t requests_at_once) {
  Credentials credentials(std::move(access));
  TRY(credentials.Refresh(io::Wall()));
  return std::unique_ptr<Server>(new Server(std::move(credentials), requests_at_once));
}

Result<const Credentials*> Server::credentials() {
  TRY(credentials_.Refresh(io::Wall()));
  return &credentials_;
}

void Server::Send(Request request, Duration timeout, Answer answer) {
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->patience = timeout;
  call->answer = std::move(answer);
  Launch(call);
}

std::unique_ptr<Stream> Server::Open(Request request, Duration silence, Data data, Answer end) {
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->patience = silence;
  call->data = std::move(data);
  call->answer = std::move(end);
  call->is_stream = true;
  Launch(call);
  return std::make_unique<OpenStream>(*this, std::move(call));
}

void Server::Launch(const std::shared_ptr<Call>& call) {
  if (auto refreshed = credentials_.Refresh(io::Wall()); !refreshed) {
    call->failure = refreshed.error();
    failed_.push_back(call);
    return;
  }
  if (shown_generation_ != credentials_.generation()) {
    client_.set_tls(credentials_.tls());
    shown_generation_ = credentials_.generation();
  }
  call->generation = credentials_.generation();
  io::HttpRequest request{.method = call->request.method,
                          .url = credentials_.access().server + call->request.path,
                          .headers = {fmt::format("User-Agent: trainyard/{}", base::kVersion),
                                      "Accept: application/json, */*"},
                          .body = call->request.body};
  if (!call->request.content_type.empty()) {
    request.headers.push_back("Content-Type: " + call->request.content_type);
  }
  if (!credentials_.authorization().empty()) {
    request.headers.push_back("Authorization: " + credentials_.authorization());
  }
  auto take = [this, call](auto result) { Take(call, std::move(result)); };
  if (call->is_stream) {
    call->id = client_.Open(
        std::move(request), call->patience, [call](std::string_view bytes) { call->data(bytes); },
        std::move(take));
  } else {
    const auto spent = std::chrono::duration_cast<Duration>(steady_clock::now() - call->begin);
    call->id = client_.Send(std::move(request), call->patience - spent, std::move(take));
  }
}

void Server::Take(const std::shared_ptr<Call>& call, Result<io::HttpResponse> result) {
  if (!result) return call->answer(std::unexpected(result.error()));
  if (result->status == 401 && !call->renewed && credentials_.Renew(call->generation, io::Wall())) {
    call->renewed = true;
    return Launch(call);
  }
  call->answer(Response{.status = result->status,
                        .body = std::move(result->body),
                        .retry_after = RetryAfter(*result)});
}

void Server::Poll(Duration timeout, std::span<pollfd> extra) {
  client_.Poll(failed_.empty() ? timeout : Duration(0), extra);
  for (const auto& call : std::exchange(failed_, {})) {
    if (!call->closed) call->answer(std::unexpected(*call->failure));
  }
}

void Server::Wake() { client_.Wake(); }

}  // namespace kube
