// Beast's basic_parser knows the grammar; the rules on top of it, and all limits on sizes but the
// body's, are ours: Beast takes a missing Host, any Transfer-Encoding that it does not understand,
// repeated equal Content-Lengths and folded lines, and counts its limit of the head anew after each
// line that it has taken.
#include "io/http_parse.h"

#include <algorithm>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <fmt/core.h>

#include "base/result.h"
#include "base/strings.h"

namespace io {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

// Bytes of a body that there is room for before any has come.
constexpr size_t kMostUnseen = 1 << 20;

bool IsVisible(char c) { return c > 0x20 && c < 0x7f; }

// A name, an IPv4 address or a bracketed IPv6 one, and perhaps a port.
bool IsHost(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(".-_:[]").contains(c);
  });
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool HasFoldedLine(std::string_view head) {
  return head.contains("\r\n ") || head.contains("\r\n\t");
}

}  // namespace

class HttpParser::Message final : public http::basic_parser<true> {
 public:
  explicit Message(const Limits& limits) : limits_(limits) {
    header_limit(static_cast<std::uint32_t>(limits.head));
    body_limit(limits.body);
  }

  size_t Put(std::string_view bytes) {
    size_t used = 0;
    while (used < bytes.size() && refusal_ == 0 && !is_done()) {
      const std::string_view rest = bytes.substr(used);
      const bool in_head = !is_header_done();
      // The shortest end of a chunked body; with less of it, an assertion in Beast 1.81 fails.
      if (!in_head && chunked() && rest.size() < std::string_view("0\r\n\r\n").size()) break;
      beast::error_code error;
      const size_t size = put({rest.data(), rest.size()}, error);
      used += size;
      if (in_head) CheckHead(rest.substr(0, size));
      if (error == http::error::need_more) {
        const size_t waiting = rest.size() - size + (is_header_done() ? 0 : head_size_);
        if (waiting > limits_.head) Refuse(is_header_done() ? 400 : 431, "a line without an end");
        break;
      }
      if (error) RefuseFor(error);
    }
    return used;
  }

  State state() const {
    if (refusal_ != 0) return State::kRefused;
    if (is_done()) return State::kDone;
    if (is_header_done()) return State::kBody;
    return got_some() ? State::kHead : State::kIdle;
  }

  bool TakeContinue() {
    if (state() != State::kBody || continued_) return false;
    continued_ = true;
    return is_11_ && base::Lower(request.Header("expect")) == "100-continue";
  }

  // HTTP/1.0 has keep-alive by an extension that we do not speak.
  bool reusable() const { return is_11_ && reusable_; }
  ServerResponse Refusal() const {
    return {.status = refusal_, .body = fmt::format("refused: {}\n", why_)};
  }

  ServerRequest request;

 private:
  void Refuse(int status, std::string why) {
    if (refusal_ != 0) return;
    refusal_ = status;
    why_ = std::move(why);
  }

  void RefuseFor(beast::error_code error) {
    if (error == http::error::header_limit) return Refuse(431, "head too large");
    if (error == http::error::body_limit) {
      return Refuse(413, fmt::format("body of more than {} bytes", limits_.body));
    }
    Refuse(400, error.message());
  }

  void CheckHead(std::string_view taken) {
    head_size_ += taken.size();
    if (head_size_ > limits_.head) Refuse(431, "head too large");
    if (HasFoldedLine(taken)) Refuse(400, "folded header");
  }

  size_t Count(std::string_view name) const {
    return static_cast<size_t>(
        std::ranges::count(request.headers, name, &std::pair<std::string, std::string>::first));
  }

  void CheckHeaders() {
    if (Count("host") != 1) return Refuse(400, "Host must be given exactly once");
    if (!IsHost(request.Header("host"))) return Refuse(400, "Host is not a host name");
    const size_t lengths = Count("content-length");
    if (lengths > 1 || (lengths == 1 && !IsDigits(request.Header("content-length")))) {
      return Refuse(400, "Content-Length must be one number");
    }
    if (const size_t encodings = Count("transfer-encoding"); encodings > 0) {
      const bool chunked = base::Lower(request.Header("transfer-encoding")) == "chunked";
      if (encodings > 1 || lengths > 0 || !chunked || !is_11_) {
        return Refuse(400, "Transfer-Encoding may only be chunked");
      }
    }
  }

  void on_request_impl(http::verb, beast::string_view method, beast::string_view target,
                       int version, beast::error_code&) override {
    if (!target.starts_with('/') || !std::ranges::all_of(target, IsVisible)) {
      return Refuse(400, "the target must be a path");
    }
    is_11_ = version == 11;
    request.method = method;
    const size_t query = target.find('?');
    request.path = target.substr(0, query);
    if (query != beast::string_view::npos) request.query = target.substr(query + 1);
  }

  void on_field_impl(http::field, beast::string_view name, beast::string_view value,
                     beast::error_code& error) override {
    if (headed_) return;  // a trailer
    if (request.headers.size() >= limits_.headers) {
      error = http::error::header_limit;
      return;
    }
    request.headers.emplace_back(base::Lower(name), value);
  }

  void on_header_impl(beast::error_code&) override {
    headed_ = true;
    reusable_ = basic_parser::keep_alive();  // before a trailer can change it
    CheckHeaders();
  }

  size_t on_body_impl(beast::string_view bytes, beast::error_code&) override {
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }

  size_t on_chunk_body_impl(std::uint64_t, beast::string_view bytes, beast::error_code&) override {
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }

  void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length,
                         beast::error_code&) override {
    // Refused or not: a length is only what a client says.
    request.body.reserve(std::min<std::uint64_t>(length.value_or(0), kMostUnseen));
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, beast::error_code&) override {}
  void on_finish_impl(beast::error_code&) override {}

  const Limits limits_;
  size_t head_size_ = 0;  // bytes of the head taken so far
  bool is_11_ = false;
  bool headed_ = false;
  bool reusable_ = false;
  bool continued_ = false;
  int refusal_ = 0;  // a status
  std::string why_;
};

HttpParser::HttpParser(Limits limits)
    : limits_(limits), message_(std::make_unique<Message>(limits)) {}
HttpParser::~HttpParser() = default;

size_t HttpParser::Put(std::string_view bytes) { return message_->Put(bytes); }
HttpParser::State HttpParser::state() const { return message_->state(); }
bool HttpParser::keep_alive() const { return message_->reusable(); }
bool HttpParser::TakeContinue() { return message_->TakeContinue(); }
ServerResponse HttpParser::Refusal() const { return message_->Refusal(); }

ServerRequest HttpParser::Take() {
  CHECK(state() == State::kDone);
  ServerRequest request = std::move(message_->request);
  message_ = std::make_unique<Message>(limits_);
  return request;
}

}  // namespace io
