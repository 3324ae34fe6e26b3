// A server for tests that does to each connection what the test says: well or badly.
//
// Each connection runs the handler in a thread of its own. The end of the server ends them all, so
// a handler may wait for ever.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "io/files.h"
#include "io/testing/certificates.h"

namespace io::testing {

class Connection {
 public:
  // Empty once the peer has closed.
  std::string ReadSome();
  // Shorter once the peer has closed.
  std::string ReadExactly(size_t count);
  // Head and body of the next request; empty once the peer has closed.
  std::string ReadRequest();
  void Write(std::string_view bytes);
  // A whole answer; extra headers end with "\r\n" each.
  void Answer(int status, std::string_view body, std::string_view headers = "");
  void WaitUntilClosed();
  // The name of the client's certificate; empty without one.
  std::string peer_name() const;

 private:
  friend class Server;
  Fd fd_;
  void* tls_ = nullptr;  // an SSL*
  std::string read_;     // and not taken yet
};

struct ServerOptions {
  std::optional<KeyPair> identity;  // TLS
  std::string client_ca;            // PEM; asks for a client certificate
  bool old_tls = false;             // 1.1 at most
};

class Server {
 public:
  using Handler = std::function<void(Connection&)>;

  explicit Server(Handler handler, ServerOptions options = {});
  ~Server();

  int port() const { return port_; }
  std::string url(const std::string& path = "/") const;
  int connections() const { return connections_; }

 private:
  void Accept();
  void Serve(Connection& connection);

  Handler handler_;
  ServerOptions options_;
  void* context_ = nullptr;  // an SSL_CTX*
  Fd listener_;
  int port_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;
  std::list<Connection> open_;       // guarded by mutex_
  std::list<std::jthread> threads_;  // guarded by mutex_
  std::jthread acceptor_;
};

}  // namespace io::testing
