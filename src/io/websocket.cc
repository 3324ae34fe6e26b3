// libcurl makes the connection (TLS, proxies: CURLOPT_CONNECT_ONLY), the upgrade request is written
// by hand, since libcurl 7.88 does not let go of a connection after a 101, and wslay does the
// frames.
#include "io/websocket.h"

#include <algorithm>
#include <cstring>

#include <curl/curl.h>
#include <fmt/core.h>
#include <openssl/sha.h>
#include <poll.h>
#include <sys/random.h>
#include <wslay/wslay.h>

#include "base/base64.h"
#include "base/strings.h"
#include "io/curl_easy.h"

namespace io {
namespace {

using base::Duration;
using base::Error;
using base::ErrorKind;
using base::Result;
using std::chrono::steady_clock;

constexpr size_t kMostHead = size_t{64} << 10;
constexpr size_t kMostRefusal = size_t{64} << 10;
constexpr size_t kMostReadAtOnce = size_t{1} << 20;

Error Failed(const std::string& text) { return Error(ErrorKind::kUnavailable, text); }

std::string AcceptFor(const std::string& key) {
  // The number is from RFC 6455, 1.3.
  const std::string text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char hash[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash);
  return base::EncodeBase64({reinterpret_cast<const char*>(hash), sizeof hash});
}

// "HTTP/1.1 101 Switching Protocols" and the headers behind it.
Result<HttpResponse> ParseHead(std::string_view head) {
  const auto lines = base::Split(head, '\n');
  const auto words = base::Split(base::Trim(lines[0]), ' ');
  const int64_t status = words.size() > 1 ? base::ParseInt(words[1]).value_or(0) : 0;
  if (!words[0].starts_with("HTTP/1.") || status < 100 || status > 999) {
    return std::unexpected(Failed("the server does not speak HTTP"));
  }
  HttpResponse response{.status = static_cast<int>(status)};
  for (const std::string_view line : std::vector(lines.begin() + 1, lines.end())) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    response.headers.emplace_back(base::Lower(base::Trim(line.substr(0, colon))),
                                  base::Trim(line.substr(colon + 1)));
  }
  return response;
}

bool HasControlCharacter(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; });
}

// Blocking use of a connection up to a deadline; only while it is being opened.
class Opening {
 public:
  Opening(CURL* easy, Duration timeout) : easy_(easy), deadline_(steady_clock::now() + timeout) {
    curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd_);
  }

  Result<> Write(std::string_view bytes) {
    while (!bytes.empty()) {
      size_t count = 0;
      const CURLcode code = curl_easy_send(easy_, bytes.data(), bytes.size(), &count);
      if (code == CURLE_AGAIN) {
        TRY(Wait(POLLOUT));
      } else if (code != CURLE_OK) {
        return std::unexpected(Failed(curl_easy_strerror(code)));
      }
      bytes.remove_prefix(count);
    }
    return {};
  }

  // More of what comes; false at its end.
  Result<bool> Read(std::string& out) {
    char bytes[4096];
    for (;;) {
      size_t count = 0;
      const CURLcode code = curl_easy_recv(easy_, bytes, sizeof bytes, &count);
      if (code == CURLE_OK) {
        out.append(bytes, count);
        return count > 0;
      }
      if (code != CURLE_AGAIN) return std::unexpected(Failed(curl_easy_strerror(code)));
      TRY(Wait(POLLIN));
    }
  }

 private:
  Result<> Wait(short events) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline_ - steady_clock::now()).count();
    pollfd wait{.fd = fd_, .events = events, .revents = 0};
    if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) == 0) {
      return std::unexpected(Failed("no answer in time"));
    }
    return {};
  }

  CURL* easy_;
  curl_socket_t fd_ = CURL_SOCKET_BAD;
  steady_clock::time_point deadline_;
};

}  // namespace

struct WebSocket::State {
  State(HttpRequest request, Tls tls, const std::string& proxy)
      : easy(std::move(request), std::make_shared<const Tls>(std::move(tls)), proxy) {}
  ~State() { wslay_event_context_free(frames); }

  Result<HttpResponse> Upgrade(const std::string& text, Duration timeout);
  Result<> Accept(const HttpResponse& response, const Options& options, const std::string& key);

  // For wslay.
  static ssize_t OnReceive(wslay_event_context_ptr, uint8_t* bytes, size_t size, int, void* user);
  static ssize_t OnSend(wslay_event_context_ptr, const uint8_t* bytes, size_t size, int,
                        void* user);
  static int OnMask(wslay_event_context_ptr, uint8_t* bytes, size_t size, void* user);
  static void OnMessage(wslay_event_context_ptr, const wslay_event_on_msg_recv_arg* message,
                        void* user);

  CurlEasy easy;
  wslay_event_context_ptr frames = nullptr;
  std::string protocol;
  curl_socket_t fd = CURL_SOCKET_BAD;
  std::string early;   // bytes that came with the head
  size_t budget = 0;   // left to read in this Advance
  bool more = false;   // the budget ended it
  bool ended = false;  // the connection
  std::string failure;
  const std::function<void(std::string_view)>* take = nullptr;
};

ssize_t WebSocket::State::OnReceive(wslay_event_context_ptr frames, uint8_t* bytes, size_t size,
                                    int, void* user) {
  auto& state = *static_cast<State*>(user);
  const auto stop = [&](int why) {
    wslay_event_set_error(frames, why);
    return -1;
  };
  size_t count = std::min(size, state.early.size());
  if (count > 0) {
    std::memcpy(bytes, state.early.data(), count);
    state.early.erase(0, count);
    return static_cast<ssize_t>(count);
  }
  if (state.budget == 0) {
    state.more = true;
    return stop(WSLAY_ERR_WOULDBLOCK);
  }
  const CURLcode code =
      curl_easy_recv(state.easy.handle(), bytes, std::min(size, state.budget), &count);
  if (code == CURLE_AGAIN) return stop(WSLAY_ERR_WOULDBLOCK);
  if (code != CURLE_OK || count == 0) {
    state.ended = true;
    if (code != CURLE_OK) state.failure = curl_easy_strerror(code);
    return stop(WSLAY_ERR_CALLBACK_FAILURE);
  }
  state.budget -= count;
  return static_cast<ssize_t>(count);
}

ssize_t WebSocket::State::OnSend(wslay_event_context_ptr frames, const uint8_t* bytes, size_t size,
                                 int, void* user) {
  auto& state = *static_cast<State*>(user);
  size_t count = 0;
  const CURLcode code = curl_easy_send(state.easy.handle(), bytes, size, &count);
  if (code == CURLE_OK) return static_cast<ssize_t>(count);
  if (code != CURLE_AGAIN) {
    state.ended = true;
    state.failure = curl_easy_strerror(code);
  }
  wslay_event_set_error(frames,
                        code == CURLE_AGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
  return -1;
}

int WebSocket::State::OnMask(wslay_event_context_ptr, uint8_t* bytes, size_t size, void*) {
  return getrandom(bytes, size, 0) == static_cast<ssize_t>(size) ? 0 : -1;
}

void WebSocket::State::OnMessage(wslay_event_context_ptr,
                                 const wslay_event_on_msg_recv_arg* message, void* user) {
  if (wslay_is_ctrl_frame(message->opcode)) return;  // wslay answers those by itself
  auto& state = *static_cast<State*>(user);
  (*state.take)({reinterpret_cast<const char*>(message->msg), message->msg_length});
}

Result<HttpResponse> WebSocket::State::Upgrade(const std::string& text, Duration timeout) {
  Opening opening(easy.handle(), timeout);
  TRY(opening.Write(text));
  std::string read;
  size_t end = std::string::npos;
  while ((end = read.find("\r\n\r\n")) == std::string::npos) {
    if (read.size() > kMostHead) return std::unexpected(Failed("the answer has no end of headers"));
    if (!TRY(opening.Read(read))) return std::unexpected(Failed("the server hung up"));
  }
  HttpResponse response = TRY(ParseHead(std::string_view(read).substr(0, end)));
  early = read.substr(end + 4);
  if (response.status == 101) return response;
  // A refusal has a body, which says why.
  const auto length = base::ParseInt(response.Header("content-length"));
  const size_t wanted = static_cast<size_t>(
      std::clamp<int64_t>(length.value_or(0), 0, static_cast<int64_t>(kMostRefusal)));
  while (early.size() < wanted && TRY(opening.Read(early))) {
  }
  response.body = early.substr(0, wanted);
  return response;
}

Result<> WebSocket::State::Accept(const HttpResponse& response, const Options& options,
                                  const std::string& key) {
  if (base::Lower(response.Header("upgrade")) != "websocket" ||
      response.Header("sec-websocket-accept") != AcceptFor(key)) {
    return std::unexpected(Failed("the server opened something that is no WebSocket"));
  }
  protocol = response.Header("sec-websocket-protocol");
  if (!options.protocols.empty() &&
      std::ranges::find(options.protocols, protocol) == options.protocols.end()) {
    return std::unexpected(Failed(fmt::format("the server speaks none of the protocols {}",
                                              base::Join(options.protocols, ", "))));
  }
  const wslay_event_callbacks callbacks{.recv_callback = &OnReceive,
                                        .send_callback = &OnSend,
                                        .genmask_callback = &OnMask,
                                        .on_frame_recv_start_callback = nullptr,
                                        .on_frame_recv_chunk_callback = nullptr,
                                        .on_frame_recv_end_callback = nullptr,
                                        .on_msg_recv_callback = &OnMessage};
  CHECK(wslay_event_context_client_init(&frames, &callbacks, this) == 0);
  wslay_event_config_set_max_recv_msg_length(frames, options.most_message);
  curl_easy_getinfo(easy.handle(), CURLINFO_ACTIVESOCKET, &fd);
  more = !early.empty();
  return {};
}

WebSocket::WebSocket(std::unique_ptr<State> state) : state_(std::move(state)) {}
WebSocket::~WebSocket() = default;

Result<std::variant<std::unique_ptr<WebSocket>, HttpResponse>> WebSocket::Connect(Options options) {
  const NoSigpipe quiet;
  unsigned char random[16];
  CHECK(getrandom(random, sizeof random, 0) == sizeof random);
  const std::string key =
      base::EncodeBase64({reinterpret_cast<const char*>(random), sizeof random});
  if (HasControlCharacter(options.request.url) ||
      std::ranges::any_of(options.request.headers, HasControlCharacter)) {
    return base::Invalid("a control character in the address or a header");
  }
  const UrlParts url = SplitUrl(options.request.url);
  std::string text = fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}\r\n",
      url.target, url.address, key);
  if (!options.protocols.empty()) {
    text += "Sec-WebSocket-Protocol: " + base::Join(options.protocols, ", ") + "\r\n";
  }
  for (const std::string& header : options.request.headers) text += header + "\r\n";

  auto state =
      std::make_unique<State>(std::move(options.request), std::move(options.tls), options.proxy);
  CURL* easy = state->easy.handle();
  curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
  if (const CURLcode code = curl_easy_perform(easy); code != CURLE_OK) {
    return std::unexpected(state->easy.ErrorOf(code));
  }
  HttpResponse response = TRY_AS(url.address, state->Upgrade(text + "\r\n", options.timeout));
  if (response.status != 101) return response;
  TRY_AS(url.address, state->Accept(response, options, key));
  return std::unique_ptr<WebSocket>(new WebSocket(std::move(state)));
}

const std::string& WebSocket::protocol() const { return state_->protocol; }
int WebSocket::fd() const { return state_->fd; }
bool WebSocket::more() const { return state_->more && !closed(); }

bool WebSocket::wants_write() const {
  return !state_->ended && wslay_event_want_write(state_->frames) != 0;
}

void WebSocket::Send(std::string_view message) {
  const wslay_event_msg queued{.opcode = WSLAY_BINARY_FRAME,
                               .msg = reinterpret_cast<const uint8_t*>(message.data()),
                               .msg_length = message.size()};
  // Refused once the socket is being closed, when nobody would read it.
  wslay_event_queue_msg(state_->frames, &queued);
}

size_t WebSocket::queued() const { return wslay_event_get_queued_msg_length(state_->frames); }

void WebSocket::Close() {
  wslay_event_queue_close(state_->frames, WSLAY_CODE_NORMAL_CLOSURE, nullptr, 0);
}

Result<> WebSocket::Advance(const std::function<void(std::string_view)>& take, bool receive) {
  if (closed()) return {};
  const NoSigpipe quiet;
  State& s = *state_;
  s.take = &take;
  s.budget = kMostReadAtOnce;
  s.more = s.more && !receive;
  int result = receive && wslay_event_want_read(s.frames) ? wslay_event_recv(s.frames) : 0;
  if (result == 0 && wslay_event_want_write(s.frames)) result = wslay_event_send(s.frames);
  s.take = nullptr;
  const bool said_goodbye = wslay_event_get_close_received(s.frames) != 0;
  const bool over = !wslay_event_want_read(s.frames) && !wslay_event_want_write(s.frames);
  if (said_goodbye && (s.ended || over)) return {};
  if (result == 0 && !over) return {};
  const std::string why = !s.ended            ? "what came is no WebSocket message"
                          : s.failure.empty() ? "the connection was cut"
                                              : "the connection was cut: " + s.failure;
  s.ended = true;
  return std::unexpected(s.easy.Failure(ErrorKind::kUnavailable, why));
}

bool WebSocket::closed() const {
  const State& s = *state_;
  return s.ended || (!wslay_event_want_read(s.frames) && !wslay_event_want_write(s.frames));
}

}  // namespace io
