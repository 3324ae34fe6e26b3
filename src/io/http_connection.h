// One client of an HTTP server: reads its requests, has them answered one by one, and writes the
// answers. Belongs to http_server.cc, on whose thread all of it runs.
//
// It is kept alive by the wait or the Reply that is under way; closing it ends its wait. It looks
// at no clock by itself: whoever has it calls Check now and then.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "io/http_server.h"

namespace io {

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Executor = boost::asio::io_context::executor_type;
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;
  using Steady = std::chrono::steady_clock;

  // What the connections of a server share.
  struct Shared {
    HttpServer::Options options;
    LaterHandler handler;
    std::function<void(const std::shared_ptr<HttpConnection>&)> closed;
    std::array<char, size_t{64} << 10> buffer;  // for reading, between two statements
    bool stopping = false;
  };

  HttpConnection(Socket socket, Shared& shared);

  void Start();
  void Close();
  // Acts on a deadline that has passed, and notices a client that closed while it is worked for.
  void Check(Steady::time_point now);
  // The server stops: no request after those that are here.
  void Finish();

  bool idle() const { return phase_ == Phase::kFresh || phase_ == Phase::kIdle; }
  Steady::time_point deadline() const { return deadline_; }

 private:
  enum class Phase { kFresh, kIdle, kHead, kBody, kWork, kAnswer, kLast };

  void Enter(Phase phase);
  void Wait(Socket::wait_type readiness);
  void Read();
  void ReadTls();
  // Answers the requests in the input one by one, as fast as the client takes the answers.
  void Advance();
  void Answer();
  void Complete(uint64_t request, const ServerResponse& response, WireOptions options);
  void Send(const ServerResponse& response, WireOptions options);
  // Whether all is written. If not, Advance is called again when more can be.
  bool Flush();
  boost::system::error_code WriteTls();
  void WaitForMore();
  void Linger();

  Socket socket_;
  std::optional<TlsConnection> tls_;
  Shared& shared_;
  HttpParser parser_;
  std::string in_;   // not yet parsed
  std::string out_;  // answer under way
  size_t sent_ = 0;  // of it
  bool last_ = false;
  bool at_once_ = false;  // the handler is being called
  uint64_t request_ = 0;  // number of the one that is answered; a Reply to an older one is late
  std::shared_ptr<std::atomic<bool>> closed_ = std::make_shared<std::atomic<bool>>(false);
  // Keeps the loop going while only a Reply is waited for.
  std::optional<boost::asio::executor_work_guard<Executor>> work_;
  Phase phase_ = Phase::kFresh;
  Steady::time_point deadline_;
};

}  // namespace io
