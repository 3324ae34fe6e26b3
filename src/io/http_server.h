// Answers HTTP requests on a thread of its own, named "http".
//
// For small pages asked for by machines and by people nearby: metrics, health, a local page, models
// in JSON. HTTP/1.1 with keep-alive and pipelining, with TLS if it has a certificate. The handler
// is called on that thread, one request at a time, and must not block: while it works, nobody else
// is answered. One that needs time takes a Reply, goes back at once, and answers when it can; a
// connection's requests are answered in their order all the same, since the next one is not read
// before.
//
// Clients are strangers. Requests are read strictly (http_parse.h has the rules; a wrong one gets
// one answer and the connection is closed), sizes and times are bounded, and who does not take his
// answers is dropped. At most `connections` are open: one more takes the place of the one that has
// been idle longest, or is closed at once when all are busy.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "io/http_message.h"
#include "io/http_parse.h"
#include "io/tls_server.h"

namespace io {

class HttpServer {
 public:
  struct Options {
    std::string address = "127.0.0.1";  // an IP address; "::" is all of both kinds
    uint16_t port = 0;                  // 0: any that is free
    HttpParser::Limits limits;          // of a request
    size_t connections = 512;
    std::shared_ptr<const TlsIdentity> identity;  // nothing: no TLS

    // Counted in steps of half a second.
    base::Duration head_time = std::chrono::seconds(10);    // from a request's first byte
    base::Duration idle_time = std::chrono::seconds(60);    // between two requests
    base::Duration body_time = std::chrono::seconds(60);    // for a whole body
    base::Duration work_time = std::chrono::minutes(5);     // for a Reply to come; then `late`
    base::Duration answer_time = std::chrono::seconds(60);  // to take a whole answer
    base::Duration drain_time = std::chrono::seconds(2);    // for all of that, once it stops
    ServerResponse late = {.status = 504, .body = "no answer in time\n"};
  };

  // Listens when it returns. kTaken: another program has the port.
  static base::Result<HttpServer> Listen(Options options, ServerHandler handler);
  static base::Result<HttpServer> ListenLater(Options options, LaterHandler handler);
  HttpServer(HttpServer&&) noexcept;
  HttpServer& operator=(HttpServer&&) noexcept;
  ~HttpServer();  // stops

  uint16_t port() const;

  // Takes no more connections, answers the requests that are here already, gives
  // clients drain_time to get and take their answers, and returns when the thread has ended. Not
  // from the handler. A second call does nothing.
  void Stop();

 private:
  class Loop;
  explicit HttpServer(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace io
