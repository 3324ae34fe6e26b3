#include "io/http_connection.h"

#include <algorithm>

#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <poll.h>

#include "io/clock.h"

namespace io {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr base::Duration kLinger = std::chrono::seconds(1);  // for the last answer to arrive

}  // namespace

HttpConnection::HttpConnection(Socket socket, Shared& shared)
    : socket_(std::move(socket)), shared_(shared), parser_(shared.options.limits) {
  if (shared.options.identity) tls_.emplace(shared.options.identity, socket_.native_handle());
}

void HttpConnection::Start() {
  Enter(Phase::kFresh);
  Wait(Socket::wait_read);
}

void HttpConnection::Close() {
  if (!socket_.is_open()) return;
  error_code ignored;
  socket_.close(ignored);
  work_.reset();
  *closed_ = true;
  shared_.closed(shared_from_this());
}

// A client that closed only its own direction looks the same as one that is gone, and is taken for
// it, as by most servers; if its request runs already it gets its answer.
void HttpConnection::Check(Steady::time_point now) {
  if (phase_ == Phase::kWork) {
    pollfd peer{socket_.native_handle(), POLLRDHUP, 0};
    if (poll(&peer, 1, 0) == 1) *closed_ = true;
  }
  if (deadline_ >= now) return;
  if (phase_ != Phase::kWork || shared_.stopping) return Close();
  *closed_ = true;
  const uint64_t number = ++request_;
  Complete(number, shared_.options.late, {.last = true});
}

void HttpConnection::Finish() {
  error_code ignored;
  const bool waiting = idle() || phase_ == Phase::kHead;
  if (waiting && socket_.available(ignored) == 0) return Close();
  if (phase_ == Phase::kAnswer) last_ = true;
  deadline_ = std::min(deadline_, Steady::now() + shared_.options.drain_time);
}

void HttpConnection::Enter(Phase phase) {
  const HttpServer::Options& options = shared_.options;
  const base::Duration limit = phase == Phase::kIdle     ? options.idle_time
                               : phase == Phase::kBody   ? options.body_time
                               : phase == Phase::kWork   ? options.work_time
                               : phase == Phase::kAnswer ? options.answer_time
                               : phase == Phase::kLast   ? kLinger
                                                         : options.head_time;
  phase_ = phase;
  deadline_ = Steady::now() + (shared_.stopping ? std::min(limit, options.drain_time) : limit);
}

void HttpConnection::Wait(Socket::wait_type readiness) {
  socket_.async_wait(readiness, [self = shared_from_this(), readiness](error_code error) {
    if (error) return self->Close();
    readiness == Socket::wait_read ? self->Read() : self->Advance();
  });
}

void HttpConnection::Read() {
  if (tls_) return ReadTls();
  error_code error;
  const size_t size = socket_.read_some(asio::buffer(shared_.buffer), error);
  if (error == asio::error::would_block) return Wait(Socket::wait_read);
  if (error) return Close();  // or the client closed
  if (phase_ == Phase::kLast) return Wait(Socket::wait_read);
  std::string_view bytes(shared_.buffer.data(), size);
  // A body may be large: it is not copied once more on its way to the request.
  if (in_.empty() && phase_ == Phase::kBody) bytes.remove_prefix(parser_.Put(bytes));
  in_.append(bytes);
  Advance();
}

void HttpConnection::ReadTls() {
  const size_t before = in_.size();
  switch (tls_->Read(in_)) {
    case TlsConnection::Now::kWaitToWrite:  // in the handshake; Advance finds nothing and reads
                                            // on
      return Wait(Socket::wait_write);
    case TlsConnection::Now::kOver:
      return Close();
    default:
      break;
  }
  if (phase_ == Phase::kLast) in_.clear();
  if (phase_ == Phase::kLast || in_.size() == before) return Wait(Socket::wait_read);
  Advance();
}

void HttpConnection::Advance() {
  while (Flush()) {
    if (last_) return Linger();
    in_.erase(0, parser_.Put(in_));
    switch (parser_.state()) {
      case HttpParser::State::kDone:
        Answer();
        if (phase_ == Phase::kWork) return;  // Complete goes on
        break;
      case HttpParser::State::kRefused:
        Send(parser_.Refusal(), {.last = true});
        break;
      default:
        if (!parser_.TakeContinue()) return WaitForMore();
        out_ = "HTTP/1.1 100 Continue\r\n\r\n";
    }
  }
}

void HttpConnection::Answer() {
  const bool keep = parser_.keep_alive() && !shared_.stopping;
  ServerRequest request = parser_.Take();
  const WireOptions options{.head_only = request.method == "HEAD", .last = !keep};
  Enter(Phase::kWork);
  work_.emplace(socket_.get_executor());
  at_once_ = true;
  const uint64_t number = ++request_;
  shared_.handler(std::move(request),
                  Reply(
                      [self = shared_from_this(), number, options](ServerResponse response) {
                        asio::dispatch(self->socket_.get_executor(),
                                       [self, number, options, response = std::move(response)] {
                                         self->Complete(number, response, options);
                                       });
                      },
                      closed_));
  at_once_ = false;
}

void HttpConnection::Complete(uint64_t request, const ServerResponse& response,
                              WireOptions options) {
  if (request != request_) return;
  work_.reset();
  if (!socket_.is_open()) return;
  options.last = options.last || shared_.stopping;
  Send(response, options);
  if (!at_once_) Advance();
}

void HttpConnection::Send(const ServerResponse& response, WireOptions options) {
  out_ = ToWire(response, options, Wall());
  last_ = options.last;
  Enter(Phase::kAnswer);
}

bool HttpConnection::Flush() {
  while (sent_ < out_.size()) {
    error_code error;
    if (tls_) {
      error = WriteTls();
    } else {
      sent_ += socket_.write_some(asio::buffer(out_) + sent_, error);
    }
    if (error == asio::error::would_block) {
      Wait(Socket::wait_write);
      return false;
    }
    if (error) {
      Close();
      return false;
    }
  }
  std::string().swap(out_);
  sent_ = 0;
  return true;
}

error_code HttpConnection::WriteTls() {
  switch (tls_->Write(std::string_view(out_).substr(sent_), sent_)) {
    case TlsConnection::Now::kDone:
      return {};
    case TlsConnection::Now::kWaitToWrite:
      return asio::error::would_block;
    default:
      return asio::error::connection_aborted;
  }
}

void HttpConnection::WaitForMore() {
  const HttpParser::State state = parser_.state();
  const Phase phase = state == HttpParser::State::kIdle   ? Phase::kIdle
                      : state == HttpParser::State::kHead ? Phase::kHead
                                                          : Phase::kBody;
  if (phase != phase_) Enter(phase);
  if (in_.empty()) in_.shrink_to_fit();
  Wait(Socket::wait_read);
}

// Closing while input is unread would make the kernel throw away what the client has not read of
// the answer. So only our direction is closed, and what still comes is dropped for a while.
void HttpConnection::Linger() {
  error_code ignored;
  if (tls_) tls_->Finish();
  socket_.shutdown(Socket::shutdown_send, ignored);
  std::string().swap(in_);
  Enter(Phase::kLast);
  Wait(Socket::wait_read);
}

}  // namespace io
