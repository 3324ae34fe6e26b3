// One thread waits, with Asio, for sockets to become readable or writable, and then reads and
// writes without blocking. Only readiness is waited for, never a transfer into a buffer, so an idle
// connection holds no buffer. Connections are owned by the loop's set and kept alive by the wait
// that is under way; closing one ends its wait. Deadlines are looked at in a sweep, which runs only
// while there are connections: without any, the thread sleeps.
#include "io/http_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <unordered_set>
#include <vector>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <sys/socket.h>

#include "io/clock.h"
#include "io/files.h"

namespace io {
namespace {

namespace asio = boost::asio;
using base::Result;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<Tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<Tcp, Executor>;
using Steady = std::chrono::steady_clock;
using Timer = asio::basic_waitable_timer<Steady, asio::wait_traits<Steady>, Executor>;

constexpr base::Duration kSweep = std::chrono::milliseconds(500);
constexpr base::Duration kLinger = std::chrono::seconds(1);  // for the last answer to arrive
constexpr int kAcceptsATurn = 64;

class Connection;

// What the connections of a server share.
struct Shared {
  HttpServer::Options options;
  LaterHandler handler;
  std::function<void(const std::shared_ptr<Connection>&)> closed;
  std::array<char, size_t{64} << 10> buffer;  // for reading, between two statements
  bool stopping = false;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, Shared& shared)
      : socket_(std::move(socket)), shared_(shared), parser_(shared.options.limits) {
    if (shared.options.identity) tls_.emplace(shared.options.identity, socket_.native_handle());
  }

  void Start() {
    Enter(Phase::kFresh);
    Wait(Socket::wait_read);
  }

  void Close() {
    if (!socket_.is_open()) return;
    error_code ignored;
    socket_.close(ignored);
    work_.reset();
    shared_.closed(shared_from_this());
  }

  // The server stops: no request after those that are here.
  void Finish() {
    error_code ignored;
    const bool waiting = idle() || phase_ == Phase::kHead;
    if (waiting && socket_.available(ignored) == 0) return Close();
    if (phase_ == Phase::kAnswer) last_ = true;
    deadline_ = std::min(deadline_, Steady::now() + shared_.options.drain_time);
  }

  bool idle() const { return phase_ == Phase::kFresh || phase_ == Phase::kIdle; }
  Steady::time_point deadline() const { return deadline_; }

 private:
  enum class Phase { kFresh, kIdle, kHead, kBody, kWork, kAnswer, kLast };

  void Enter(Phase phase) {
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

  void Wait(Socket::wait_type readiness) {
    socket_.async_wait(readiness, [self = shared_from_this(), readiness](error_code error) {
      if (error) return self->Close();
      readiness == Socket::wait_read ? self->Read() : self->Advance();
    });
  }

  void Read() {
    if (tls_) return ReadTls();
    error_code error;
    const size_t size = socket_.read_some(asio::buffer(shared_.buffer), error);
    if (error == asio::error::would_block) return Wait(Socket::wait_read);
    if (error) return Close();  // or the client closed
    if (phase_ == Phase::kLast) return Wait(Socket::wait_read);
    in_.append(shared_.buffer.data(), size);
    Advance();
  }

  void ReadTls() {
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

  // Answers the requests in the input one by one, as fast as the client takes the answers.
  void Advance() {
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

  void Answer() {
    const bool keep = parser_.keep_alive() && !shared_.stopping;
    ServerRequest request = parser_.Take();
    const WireOptions options{.head_only = request.method == "HEAD", .last = !keep};
    Enter(Phase::kWork);
    work_.emplace(socket_.get_executor());
    at_once_ = true;
    shared_.handler(std::move(request),
                    Reply([self = shared_from_this(), options](ServerResponse response) {
                      asio::dispatch(self->socket_.get_executor(),
                                     [self, options, response = std::move(response)] {
                                       self->Complete(response, options);
                                     });
                    }));
    at_once_ = false;
  }

  void Complete(const ServerResponse& response, WireOptions options) {
    work_.reset();
    if (!socket_.is_open()) return;
    options.last = options.last || shared_.stopping;
    Send(response, options);
    if (!at_once_) Advance();
  }

  void Send(const ServerResponse& response, WireOptions options) {
    out_ = ToWire(response, options, Now());
    last_ = options.last;
    Enter(Phase::kAnswer);
  }

  // Whether all is written. If not, Advance is called again when more can be.
  bool Flush() {
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

  error_code WriteTls() {
    switch (tls_->Write(std::string_view(out_).substr(sent_), sent_)) {
      case TlsConnection::Now::kDone:
        return {};
      case TlsConnection::Now::kWaitToWrite:
        return asio::error::would_block;
      default:
        return asio::error::connection_aborted;
    }
  }

  void WaitForMore() {
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
  void Linger() {
    error_code ignored;
    if (tls_) tls_->Finish();
    socket_.shutdown(Socket::shutdown_send, ignored);
    std::string().swap(in_);
    Enter(Phase::kLast);
    Wait(Socket::wait_read);
  }

  Socket socket_;
  std::optional<TlsConnection> tls_;
  Shared& shared_;
  HttpParser parser_;
  std::string in_;   // not yet parsed
  std::string out_;  // answer under way
  size_t sent_ = 0;  // of it
  bool last_ = false;
  bool at_once_ = false;  // the handler is being called
  // Keeps the loop going while only a Reply is waited for.
  std::optional<asio::executor_work_guard<Executor>> work_;
  Phase phase_ = Phase::kFresh;
  Steady::time_point deadline_;
};

}  // namespace

class HttpServer::Loop {
 public:
  Loop(Options options, LaterHandler handler)
      : shared_{.options = std::move(options),
                .handler = std::move(handler),
                .closed = [this](const auto& connection) { Forget(connection); }} {}

  Result<> Bind() {
    const Options& options = shared_.options;
    error_code error;
    const auto address = asio::ip::make_address(options.address, error);
    if (error) return base::Invalid(fmt::format("'{}' is not an IP address", options.address));
    Tcp::endpoint endpoint(address, options.port);
    try {
      acceptor_.open(endpoint.protocol(), error);
      if (error == asio::error::address_family_not_supported && address.is_v6() &&
          address.is_unspecified()) {
        endpoint = {Tcp::v4(), options.port};  // all that this machine has
        acceptor_.open(endpoint.protocol(), error);
      }
      if (error) throw boost::system::system_error(error);
      fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
      acceptor_.set_option(Acceptor::reuse_address(true));
      if (endpoint.protocol() == Tcp::v6()) acceptor_.set_option(asio::ip::v6_only(false));
      acceptor_.bind(endpoint);
      acceptor_.listen();
      acceptor_.non_blocking(true);
      bound_ = acceptor_.local_endpoint();
    } catch (const boost::system::system_error& failed) {
      return base::FromErrno(fmt::format("listen on {} port {}", options.address, options.port),
                             failed.code().value());
    }
    return {};
  }

  void Start() {
    Accept();
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::jthread([this] {
        pthread_setname_np(pthread_self(), "http");
        io_.run();
      });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void Stop() {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] {
      shared_.stopping = true;
      error_code ignored;
      acceptor_.close(ignored);
      if (connections_.empty()) sweep_.cancel();
      for (const auto& connection : Snapshot()) connection->Finish();
    });
    thread_.join();  // the loop has nothing more to wait for
  }

  uint16_t port() const { return bound_.port(); }

 private:
  std::vector<std::shared_ptr<Connection>> Snapshot() const {
    return {connections_.begin(), connections_.end()};
  }

  void Accept() {
    acceptor_.async_wait(Acceptor::wait_read, [this](error_code error) {
      if (error || shared_.stopping) return;
      for (int i = 0; i < kAcceptsATurn; ++i) {
        Fd fd(accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
        if (fd.valid()) {
          Admit(std::move(fd));
        } else if (errno == EAGAIN) {
          break;
        } else if (errno != EINTR && errno != ECONNABORTED) {
          starved_ = true;  // most likely no descriptors: trying again at once would spin
          return Sweep();
        }
      }
      Accept();
    });
  }

  void Admit(Fd fd) {
    if (connections_.size() >= shared_.options.connections && !CloseAnIdleOne()) return;
    Socket socket(io_);
    error_code error;
    socket.assign(bound_.protocol(), fd.get(), error);
    if (error) return;
    fd.release();
    socket.non_blocking(true, error);
    if (!error) socket.set_option(Tcp::no_delay(true), error);
    if (error) return;
    const auto connection = std::make_shared<Connection>(std::move(socket), shared_);
    connections_.insert(connection);
    if (connections_.size() == 1) Sweep();
    connection->Start();
  }

  void Forget(const std::shared_ptr<Connection>& connection) {
    connections_.erase(connection);
    if (connections_.empty() && !starved_) sweep_.cancel();
  }

  bool CloseAnIdleOne() {
    std::shared_ptr<Connection> oldest;
    for (const auto& connection : connections_) {
      if (connection->idle() && (!oldest || connection->deadline() < oldest->deadline())) {
        oldest = connection;
      }
    }
    if (oldest) oldest->Close();
    return oldest != nullptr;
  }

  void Sweep() {
    sweep_.expires_after(kSweep);
    sweep_.async_wait([this](error_code error) {
      if (error) return;
      const auto now = Steady::now();
      for (const auto& connection : Snapshot()) {
        if (connection->deadline() < now) connection->Close();
      }
      if (starved_ && !shared_.stopping) {
        starved_ = false;
        Accept();
      }
      if (!connections_.empty()) Sweep();
    });
  }

  // The connections go first: their sockets belong to the context.
  asio::io_context io_{1};
  Acceptor acceptor_{io_};
  Timer sweep_{io_};
  Tcp::endpoint bound_;
  Shared shared_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  bool starved_ = false;  // not accepting until the next sweep
  std::jthread thread_;
};

Result<HttpServer> HttpServer::Listen(Options options, ServerHandler handler) {
  return ListenLater(std::move(options),
                     [handler = std::move(handler)](ServerRequest request, Reply reply) mutable {
                       reply(handler(request));
                     });
}

Result<HttpServer> HttpServer::ListenLater(Options options, LaterHandler handler) try {
  auto loop = std::make_unique<Loop>(std::move(options), std::move(handler));
  TRY(loop->Bind());
  loop->Start();
  return HttpServer(std::move(loop));
} catch (const std::exception& error) {  // no descriptors, no threads
  return std::unexpected(base::Error(base::ErrorKind::kUnavailable,
                                     std::string("start an HTTP server: ") + error.what()));
}

HttpServer::HttpServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
HttpServer::HttpServer(HttpServer&&) noexcept = default;
HttpServer& HttpServer::operator=(HttpServer&& other) noexcept {
  if (this != &other) {
    Stop();
    loop_ = std::move(other.loop_);
  }
  return *this;
}
HttpServer::~HttpServer() { Stop(); }

uint16_t HttpServer::port() const { return loop_->port(); }

void HttpServer::Stop() {
  if (loop_) loop_->Stop();
}

}  // namespace io
