#include "io/curl_easy.h"

#include <algorithm>

#include <curl/curl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/strings.h"

namespace io {
namespace {

constexpr long kConnectMillis = 10'000;
// A peer that is gone is noticed within this time, whether we wait for its answer or for it to take
// what we sent. As client-go: 30 s.
constexpr int kDeadPeerMillis = 30'000;

static_assert(CURL_ERROR_SIZE == 256);

// Not thread-safe before its first call, hence once and for all.
void InitOnce() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(initialised == CURLE_OK);
}

template <typename Value>
void Set(CURL* easy, CURLoption option, Value value) {
  CHECK(curl_easy_setopt(easy, option, value) == CURLE_OK);
}

// Only memory can run out: the text lives as long as the transfer.
void SetPem(CURL* easy, CURLoption option, const std::string& pem) {
  curl_blob blob{
      .data = const_cast<char*>(pem.data()), .len = pem.size(), .flags = CURL_BLOB_NOCOPY};
  Set(easy, option, &blob);
}

int OnSocket(void*, curl_socket_t fd, curlsocktype) {
  const int millis = kDeadPeerMillis;
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &millis, sizeof millis);
  return CURL_SOCKOPT_OK;
}

curl_slist* Append(curl_slist* list, const std::string& text) {
  curl_slist* longer = curl_slist_append(list, text.c_str());
  CHECK(longer);
  return longer;
}

std::string Part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string out = text;
  curl_free(text);
  return out;
}

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

Url ParseUrl(const std::string& text) {
  Url url(curl_url(), curl_url_cleanup);
  CHECK(url);
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_PATH_AS_IS) != CURLUE_OK) {
    return Url(nullptr, curl_url_cleanup);
  }
  return url;
}

bool HasHeader(const HttpRequest& request, std::string_view name) {
  return std::ranges::any_of(request.headers, [&](const std::string& header) {
    return base::Lower(header.substr(0, header.find(':'))) == name;
  });
}

}  // namespace

UrlParts SplitUrl(const std::string& text) {
  const Url url = ParseUrl(text);
  if (!url) return {.address = "(no address)", .target = "/"};
  const std::string query = Part(url.get(), CURLUPART_QUERY);
  return {.address = Part(url.get(), CURLUPART_HOST) + ":" +
                     Part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT),
          .target = Part(url.get(), CURLUPART_PATH) + (query.empty() ? "" : "?" + query)};
}

CurlEasy::CurlEasy(HttpRequest request, std::shared_ptr<const Tls> tls, const std::string& proxy)
    : request_(std::move(request)), tls_(std::move(tls)) {
  InitOnce();
  handle_ = curl_easy_init();
  CHECK(handle_);
  CURL* easy = handle_;
  Set(easy, CURLOPT_ERRORBUFFER, text_);
  Set(easy, CURLOPT_NOSIGNAL, 1L);
  Set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(easy, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  Set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  Set(easy, CURLOPT_PATH_AS_IS, 1L);
  Set(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMillis);
  Set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  Set(easy, CURLOPT_TCP_KEEPIDLE, 15L);
  Set(easy, CURLOPT_TCP_KEEPINTVL, 5L);
  Set(easy, CURLOPT_SOCKOPTFUNCTION, &OnSocket);
  Set(easy, CURLOPT_PROXY, proxy.c_str());  // empty also means: not from the environment
  Set(easy, CURLOPT_NOPROXY, "");

  // No "100-continue" round trip before a large body, and no content type that nobody named.
  curl_slist* headers = Append(nullptr, "Expect:");
  if (!HasHeader(request_, "content-type")) headers = Append(headers, "Content-Type:");
  for (const std::string& header : request_.headers) headers = Append(headers, header);
  headers_ = headers;

  Set(easy, CURLOPT_URL, request_.url.c_str());
  const bool has_body = !request_.body.empty() || request_.method == "POST" ||
                        request_.method == "PUT" || request_.method == "PATCH";
  if (has_body) {
    Set(easy, CURLOPT_POST, 1L);
    Set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    Set(easy, CURLOPT_POSTFIELDS, request_.body.data());
  }
  if (request_.method == "HEAD") Set(easy, CURLOPT_NOBODY, 1L);
  if (request_.method != "GET" || has_body) {
    Set(easy, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
  TrustAndIdentity();
  if (!tls_->server_name.empty()) ConnectUnderAnotherName();
  Set(easy, CURLOPT_HTTPHEADER, static_cast<curl_slist*>(headers_));
}

CurlEasy::~CurlEasy() {
  const NoSigpipe quiet;
  curl_easy_cleanup(handle_);
  curl_slist_free_all(static_cast<curl_slist*>(headers_));
  curl_slist_free_all(static_cast<curl_slist*>(connect_to_));
}

void CurlEasy::TrustAndIdentity() {
  CURL* easy = handle_;
  Set(easy, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
  Set(easy, CURLOPT_SSL_VERIFYPEER, tls_->skip_verify ? 0L : 1L);
  Set(easy, CURLOPT_SSL_VERIFYHOST, tls_->skip_verify ? 0L : 2L);
  if (!tls_->ca.empty()) {
    SetPem(easy, CURLOPT_CAINFO_BLOB, tls_->ca);
    // Else the system's directory of authorities would be believed as well.
    Set(easy, CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  if (!tls_->certificate.empty()) SetPem(easy, CURLOPT_SSLCERT_BLOB, tls_->certificate);
  if (!tls_->key.empty()) SetPem(easy, CURLOPT_SSLKEY_BLOB, tls_->key);
}

// libcurl asks for and checks the name in the URL, so the URL gets the wanted name, and the
// connection and the Host header the real one.
void CurlEasy::ConnectUnderAnotherName() {
  const Url url = ParseUrl(request_.url);
  if (!url) return;  // the transfer will say so
  const std::string host = Part(url.get(), CURLUPART_HOST);
  const std::string port = Part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (curl_url_set(url.get(), CURLUPART_HOST, tls_->server_name.c_str(), 0) != CURLUE_OK) return;
  Set(handle_, CURLOPT_URL, Part(url.get(), CURLUPART_URL).c_str());
  connect_to_ = Append(nullptr, fmt::format("::{}:{}", host, port));
  Set(handle_, CURLOPT_CONNECT_TO, static_cast<curl_slist*>(connect_to_));
  headers_ = Append(static_cast<curl_slist*>(headers_), fmt::format("Host: {}:{}", host, port));
}

base::Error CurlEasy::Failure(base::ErrorKind kind, const std::string& text) const {
  return base::Error(kind, SplitUrl(request_.url).address + ": " + text);
}

base::Error CurlEasy::ErrorOf(int code) const {
  using enum base::ErrorKind;
  const std::string text =
      base::OneLine(text_[0] ? text_ : curl_easy_strerror(static_cast<CURLcode>(code)), 200);
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
      return Failure(kForbidden, "the server's certificate is not accepted: " + text);
    case CURLE_SSL_CACERT_BADFILE:
      return Failure(kInvalid, "the certificate authority cannot be read: " + text);
    case CURLE_SSL_CERTPROBLEM:
      return Failure(kInvalid, "the client certificate or its key cannot be used: " + text);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Failure(kInvalid, "not an http or https address: " + text);
    default:
      return Failure(kUnavailable, text);
  }
}

NoSigpipe::NoSigpipe() {
  sigset_t pipe, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  pending_before_ = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe, &before_);
}

NoSigpipe::~NoSigpipe() {
  if (!pending_before_) {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    const timespec at_once{};
    while (sigtimedwait(&pipe, nullptr, &at_once) == -1 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace io
