// One thread waits, with Asio, for sockets to become readable or writable, and then reads and
// writes without blocking. Only readiness is waited for, never a transfer into a buffer, so an idle
// connection holds no buffer. Connections are owned by the loop's set and kept alive by the wait
// that is under way; closing one ends its wait. Deadlines are looked at in a sweep, which runs only
// while there are connections: without any, the thread sleeps.
#include "io/http_server.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <thread>
#include <unordered_set>
#include <vector>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <sys/socket.h>

#include "io/files.h"
#include "io/http_connection.h"

namespace io {
namespace {

namespace asio = boost::asio;
using base::Result;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Executor = HttpConnection::Executor;
using Socket = HttpConnection::Socket;
using Acceptor = asio::basic_socket_acceptor<Tcp, Executor>;
using Steady = HttpConnection::Steady;
using Timer = asio::basic_waitable_timer<Steady, asio::wait_traits<Steady>, Executor>;

constexpr base::Duration kSweep = std::chrono::milliseconds(500);
constexpr int kAcceptsATurn = 64;

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
  std::vector<std::shared_ptr<HttpConnection>> Snapshot() const {
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
    const auto connection = std::make_shared<HttpConnection>(std::move(socket), shared_);
    connections_.insert(connection);
    if (connections_.size() == 1) Sweep();
    connection->Start();
  }

  void Forget(const std::shared_ptr<HttpConnection>& connection) {
    connections_.erase(connection);
    if (connections_.empty() && !starved_) sweep_.cancel();
  }

  bool CloseAnIdleOne() {
    std::shared_ptr<HttpConnection> oldest;
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
        connection->Check(now);
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
  HttpConnection::Shared shared_;
  std::unordered_set<std::shared_ptr<HttpConnection>> connections_;
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
