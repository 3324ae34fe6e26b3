// libcurl's multi interface, driven by curl_multi_poll and curl_multi_perform. Its callbacks only
// note what came; Poll hands it out afterwards, when libcurl is not on the stack and may be called
// again. How many requests run at once, and when one has taken too long, is decided here and not by
// libcurl: its own queue knows no fairness against streams and its low-speed test notices silence
// late.
#include "io/http_client.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <curl/curl.h>
#include <fmt/core.h>

#include "base/duration.h"
#include "base/strings.h"
#include "io/curl_easy.h"

namespace io {
namespace {

using base::Duration;
using Steady = std::chrono::steady_clock::time_point;

// Of an answer that is not the stream that was asked for.
constexpr size_t kMostStreamError = size_t{1} << 20;

Steady Now() { return std::chrono::steady_clock::now(); }

struct Transfer {
  HttpClient::Id id = 0;
  bool is_stream = false;
  bool running = false;
  HttpRequest request;  // until it runs
  std::optional<CurlEasy> easy;
  size_t most_body = 0;
  size_t most_head = 0;

  HttpResponse response;
  size_t head_bytes = 0;
  bool head_complete = false;
  std::string fresh;                             // of a stream, not handed out yet
  std::string refusal;                           // why we ended it
  bool is_ready = false;                         // and named in `ready`
  std::vector<HttpClient::Id>* ready = nullptr;  // the client's list of what to hand out
  std::optional<base::Result<HttpResponse>> outcome;

  Duration patience{};  // timeout or silence
  Steady last_sign;     // begin, or the last byte of a stream
  Steady deadline;      // when to look; of a stream perhaps too early
  HttpClient::Data data;
  HttpClient::Answer end;

  bool IsSuccess() const { return response.status >= 200 && response.status < 300; }
  void SetReady() {
    if (!std::exchange(is_ready, true)) ready->push_back(id);
  }
};

size_t OnHeader(char* text, size_t, size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  transfer.head_bytes += size;
  transfer.last_sign = transfer.is_stream ? Now() : transfer.last_sign;
  if (transfer.head_bytes > transfer.most_head) {
    transfer.refusal =
        fmt::format("the answer has more than {} bytes of headers", transfer.most_head);
    return 0;
  }
  const std::string_view line = base::Trim({text, size});
  transfer.head_complete |= line.empty();
  if (line.starts_with("HTTP/")) {  // of a proxy, a 100, or the answer: the last one counts
    transfer.response.headers.clear();
    transfer.head_complete = false;
    long status = 0;
    curl_easy_getinfo(transfer.easy->handle(), CURLINFO_RESPONSE_CODE, &status);
    transfer.response.status = static_cast<int>(status);
  } else if (const size_t colon = line.find(':'); colon != std::string_view::npos) {
    transfer.response.headers.emplace_back(base::Lower(line.substr(0, colon)),
                                           base::Trim(line.substr(colon + 1)));
  }
  return size;
}

size_t OnBody(char* bytes, size_t, size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.is_stream) transfer.last_sign = Now();
  if (transfer.is_stream && transfer.IsSuccess()) {
    transfer.fresh.append(bytes, size);
    transfer.SetReady();
    return size;
  }
  const size_t most = transfer.is_stream ? kMostStreamError : transfer.most_body;
  if (transfer.response.body.size() + size > most) {
    transfer.refusal = fmt::format("the answer has more than {} bytes", most);
    return 0;
  }
  transfer.response.body.append(bytes, size);
  return size;
}

bool HasControlCharacter(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; });
}

}  // namespace

std::string_view HttpResponse::Header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &std::pair<std::string, std::string>::first);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

struct HttpClient::State {
  explicit State(Options given)
      : options(std::move(given)), tls(std::make_shared<const Tls>(std::move(options.tls))) {}

  Options options;
  std::shared_ptr<const Tls> tls;
  CURLM* multi = nullptr;
  bool polling = false;
  Id last_id = 0;
  size_t requests = 0;  // running
  size_t streams = 0;
  std::map<Id, std::shared_ptr<Transfer>> transfers;
  std::deque<Id> waiting;
  std::set<std::pair<Steady, Id>> deadlines;  // of all that have no outcome yet
  std::vector<Id> ready;

  Id Add(HttpRequest request, Duration patience, Data data, Answer end, bool is_stream);
  void Run(Transfer& transfer);
  void Halt(Transfer& transfer);
  void StartWaiting();
  void Decide(Transfer& transfer, base::Result<HttpResponse> outcome);
  void Finish(CURL* easy, CURLcode code);
  void Expire();
  void HandOut();
  Duration WaitAtMost(Duration timeout) const;
};

HttpClient::Id HttpClient::State::Add(HttpRequest request, Duration patience, Data data, Answer end,
                                      bool is_stream) {
  auto transfer = std::make_shared<Transfer>();
  transfer->id = ++last_id;
  transfer->is_stream = is_stream;
  transfer->request = std::move(request);
  transfer->most_body = options.most_body;
  transfer->most_head = options.most_head;
  transfer->patience = patience;
  transfer->last_sign = Now();
  transfer->data = std::move(data);
  transfer->end = std::move(end);
  transfer->ready = &ready;
  transfers.emplace(transfer->id, transfer);

  const auto refuse = [&](base::ErrorKind kind, std::string text) {
    Decide(*transfer, std::unexpected(base::Error(kind, std::move(text))));
    return transfer->id;
  };
  // Also keeps a token with a line break in it from becoming two headers.
  if (HasControlCharacter(transfer->request.url) ||
      std::ranges::any_of(transfer->request.headers, HasControlCharacter)) {
    return refuse(base::ErrorKind::kInvalid, "a control character in the address or a header");
  }
  if (is_stream && streams >= options.streams_at_once) {
    return refuse(base::ErrorKind::kUnavailable,
                  fmt::format("{} streams are open already", streams));
  }
  transfer->deadline = transfer->last_sign + patience;
  deadlines.emplace(transfer->deadline, transfer->id);
  if (is_stream) {
    Run(*transfer);
  } else {
    waiting.push_back(transfer->id);
  }
  return transfer->id;
}

void HttpClient::State::Run(Transfer& transfer) {
  transfer.easy.emplace(std::move(transfer.request), tls, options.proxy);
  CURL* easy = transfer.easy->handle();
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  CHECK(curl_multi_add_handle(multi, easy) == CURLM_OK);
  transfer.running = true;
  ++(transfer.is_stream ? streams : requests);
}

void HttpClient::State::Halt(Transfer& transfer) {
  if (!transfer.running) return;
  const NoSigpipe quiet;
  curl_multi_remove_handle(multi, transfer.easy->handle());
  transfer.running = false;
  --(transfer.is_stream ? streams : requests);
}

void HttpClient::State::StartWaiting() {
  while (!waiting.empty() && requests < options.requests_at_once) {
    const auto found = transfers.find(waiting.front());
    waiting.pop_front();
    if (found != transfers.end() && !found->second->outcome) Run(*found->second);
  }
}

void HttpClient::State::Decide(Transfer& transfer, base::Result<HttpResponse> outcome) {
  Halt(transfer);
  deadlines.erase({transfer.deadline, transfer.id});
  transfer.outcome = std::move(outcome);
  transfer.SetReady();
}

void HttpClient::State::Finish(CURL* easy, CURLcode code) {
  Transfer* transfer = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
  if (!transfer->refusal.empty()) {
    Decide(*transfer, std::unexpected(transfer->easy->Failure(base::ErrorKind::kUnavailable,
                                                              transfer->refusal)));
  } else if (code != CURLE_OK) {
    Decide(*transfer, std::unexpected(transfer->easy->ErrorOf(code)));
  } else if (!transfer->head_complete) {  // which libcurl takes for an answer without a body
    Decide(*transfer, std::unexpected(transfer->easy->Failure(
                          base::ErrorKind::kUnavailable, "the answer ends within its headers")));
  } else {
    Decide(*transfer, std::move(transfer->response));
  }
}

void HttpClient::State::Expire() {
  const Steady now = Now();
  while (!deadlines.empty() && deadlines.begin()->first <= now) {
    Transfer& transfer = *transfers.at(deadlines.begin()->second);
    deadlines.erase(deadlines.begin());
    transfer.deadline = transfer.last_sign + transfer.patience;
    if (transfer.deadline > now) {
      deadlines.emplace(transfer.deadline, transfer.id);
      continue;
    }
    const char* what = !transfer.running    ? "not sent, as others were before it,"
                       : transfer.is_stream ? "nothing came"
                                            : "no answer";
    const std::string text = fmt::format("{} within {:.3g} s", what,
                                         std::chrono::duration<double>(transfer.patience).count());
    Decide(transfer, std::unexpected(
                         transfer.easy ? transfer.easy->Failure(base::ErrorKind::kUnavailable, text)
                                       : base::Error(base::ErrorKind::kUnavailable, text)));
  }
}

// A callback may cancel any transfer, its own too, and begin others.
void HttpClient::State::HandOut() {
  for (const Id id : std::exchange(ready, {})) {
    const auto found = transfers.find(id);
    if (found == transfers.end()) continue;
    const std::shared_ptr<Transfer> transfer = found->second;  // the callback outlives its call
    transfer->is_ready = false;
    if (const std::string bytes = std::exchange(transfer->fresh, {}); !bytes.empty()) {
      transfer->data(bytes);
      if (!transfers.contains(id)) continue;
    }
    if (transfer->outcome) {
      transfers.erase(id);
      transfer->end(std::move(*transfer->outcome));
    }
  }
}

Duration HttpClient::State::WaitAtMost(Duration timeout) const {
  if (!ready.empty()) return Duration(0);
  if (deadlines.empty()) return timeout;
  return std::min(timeout, std::chrono::ceil<Duration>(deadlines.begin()->first - Now()));
}

HttpClient::HttpClient(Options options) : state_(std::make_unique<State>(std::move(options))) {
  CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
  state_->multi = curl_multi_init();
  CHECK(state_->multi);
  curl_multi_setopt(state_->multi, CURLMOPT_PIPELINING, long{CURLPIPE_NOTHING});
  curl_multi_setopt(state_->multi, CURLMOPT_MAXCONNECTS,
                    static_cast<long>(state_->options.requests_at_once));
}

HttpClient::~HttpClient() {
  const NoSigpipe quiet;
  for (auto& [id, transfer] : state_->transfers) state_->Halt(*transfer);
  state_->transfers.clear();
  curl_multi_cleanup(state_->multi);
}

HttpClient::Id HttpClient::Send(HttpRequest request, Duration timeout, Answer answer) {
  return state_->Add(std::move(request), timeout, nullptr, std::move(answer), false);
}

HttpClient::Id HttpClient::Open(HttpRequest request, Duration silence, Data data, Answer end) {
  return state_->Add(std::move(request), silence, std::move(data), std::move(end), true);
}

void HttpClient::Cancel(Id id) {
  const auto found = state_->transfers.find(id);
  if (found == state_->transfers.end()) return;
  state_->Halt(*found->second);
  state_->deadlines.erase({found->second->deadline, id});
  state_->transfers.erase(found);
}

void HttpClient::set_tls(Tls tls) {
  if (tls != *state_->tls) state_->tls = std::make_shared<const Tls>(std::move(tls));
}

void HttpClient::Poll(Duration timeout, std::span<pollfd> extra) {
  CHECK(!state_->polling);
  state_->polling = true;
  state_->StartWaiting();

  std::vector<curl_waitfd> waits;
  for (pollfd& fd : extra) {
    fd.revents = 0;
    waits.push_back({.fd = fd.fd, .events = fd.events, .revents = 0});
  }
  const Duration wait = std::max(state_->WaitAtMost(timeout), Duration(0));
  const auto millis = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  curl_multi_poll(state_->multi, waits.data(), static_cast<unsigned>(waits.size()),
                  static_cast<int>(std::min<int64_t>(millis, 3'600'000)), nullptr);
  // libcurl does not pass on that a descriptor was closed at its other end.
  if (!extra.empty()) poll(extra.data(), extra.size(), 0);

  {
    const NoSigpipe quiet;
    int running = 0;
    CHECK(curl_multi_perform(state_->multi, &running) == CURLM_OK);
  }
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(state_->multi, &left)) {
    if (message->msg == CURLMSG_DONE) {
      state_->Finish(message->easy_handle, message->data.result);
    }
  }
  state_->Expire();
  state_->HandOut();
  state_->polling = false;
}

void HttpClient::Wake() { curl_multi_wakeup(state_->multi); }

}  // namespace io
