// What our HTTP server is asked and what it answers, as values; and an answer as bytes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace io {

struct ServerRequest {
  std::string method;  // as sent: "GET"
  std::string path;    // from its '/' to the query, still percent-encoded
  std::string query;   // behind the '?', still percent-encoded
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;

  // The first of this name (in lower case); empty when there is none. There is always one "host".
  std::string_view Header(std::string_view name) const;

  bool operator==(const ServerRequest&) const = default;
};

struct ServerResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // besides those about the body
};

using ServerHandler = std::move_only_function<ServerResponse(const ServerRequest&)>;

// Where the answer to one request goes: once, from any thread, now or later. Who drops it unused
// says that something broke: 500.
class Reply {
 public:
  using Flag = std::shared_ptr<const std::atomic<bool>>;

  explicit Reply(std::move_only_function<void(ServerResponse)> send, Flag closed = nullptr)
      : send_(std::move(send)), closed_(std::move(closed)) {}
  Reply(Reply&& other) noexcept
      : send_(std::exchange(other.send_, nullptr)), closed_(std::move(other.closed_)) {}
  Reply& operator=(Reply&&) = delete;
  ~Reply() {
    if (send_) send_({.status = 500, .body = "no answer was found\n"});
  }

  void operator()(ServerResponse response) { std::exchange(send_, nullptr)(std::move(response)); }

  // True from soon after the client has closed its connection, or has been told that it was too
  // late: work that has not begun need not. None: not known.
  const Flag& closed() const { return closed_; }

 private:
  std::move_only_function<void(ServerResponse)> send_;
  Flag closed_;
};

using LaterHandler = std::move_only_function<void(ServerRequest, Reply)>;

struct WireOptions {
  bool head_only = false;  // as HEAD is answered: the length of the body, and not the body
  bool last = false;       // the connection is closed behind it
};

// A header that would end its line early (it may carry what a client sent) turns the whole answer
// into a 500.
std::string ToWire(const ServerResponse& response, WireOptions options, base::Time now);

}  // namespace io
