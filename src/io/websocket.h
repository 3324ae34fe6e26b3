// A WebSocket to a server, from the client's side.
//
// Connecting waits (for a bounded time); afterwards nothing does: the owner waits for fd() to be
// readable, or writable too while wants_write(), and calls Advance. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "io/http.h"

namespace io {

class WebSocket {
 public:
  struct Options {
    HttpRequest request;                 // a GET; url with http or https
    std::vector<std::string> protocols;  // offered, the best first
    Tls tls;
    std::string proxy;
    base::Duration timeout = std::chrono::seconds(30);
    size_t most_message = size_t{4} << 20;  // bytes; a longer one ends the connection
  };

  // The socket, or what the server answered instead of opening one. A server that speaks none of
  // the protocols offered is an error.
  static base::Result<std::variant<std::unique_ptr<WebSocket>, HttpResponse>> Connect(
      Options options);
  ~WebSocket();
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  const std::string& protocol() const;  // that the server chose
  int fd() const;
  bool wants_write() const;
  // Advance has more to do, although fd() may not show it.
  bool more() const;

  // Queues a binary message; Advance sends it. Who sends much looks at queued() bytes first.
  void Send(std::string_view message);
  size_t queued() const;
  // Says that nothing more will be sent, once the queue is empty.
  void Close();

  // Sends and receives what is possible without waiting, hands out each message. Without `receive`
  // it only sends: for an owner who has no room.
  base::Result<> Advance(const std::function<void(std::string_view message)>& take,
                         bool receive = true);
  // Both sides have said their last.
  bool closed() const;

 private:
  struct State;
  explicit WebSocket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace io
