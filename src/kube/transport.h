// How requests reach an API server and answers come back: the one door that everything which talks
// to a cluster goes through. Over the network it is kube::Server (server.h); in the simulator a
// model of an API server stands behind it, so that the same code runs there.
//
// One thread: answers and stream data are handed out by the owner of the transport (Server::Poll,
// the simulator's loop), never from within a call to it. Callbacks may call the transport again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace kube {

struct Request {
  std::string method = "GET";
  std::string path;          // "/api/v1/namespaces/default/pods?limit=500": encoded, with its query
  std::string content_type;  // of the body
  std::string body;
};

struct Response {
  int status = 0;  // as HTTP numbers it, errors included
  std::string body;
  std::optional<base::Duration> retry_after;
};

// An open stream. Destroying it closes it, and its callbacks are not called any more.
class Stream {
 public:
  virtual ~Stream() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // An error means that no whole answer came: whether the server did what was asked is unknown.
  using Answer = std::move_only_function<void(base::Result<Response>)>;
  using Data = std::move_only_function<void(std::string_view bytes)>;

  // `answer` is called once, at the latest after `timeout`.
  virtual void Send(Request request, base::Duration timeout, Answer answer) = 0;

  // For a body that grows as long as the server likes (watch, followed logs). `data` gets the bytes
  // of a successful answer as they come. `end` is called once: with the response when the server
  // ended it (an error status has its body), with an error when the connection did or when nothing
  // came for `silence`.
  virtual std::unique_ptr<Stream> Open(Request request, base::Duration silence, Data data,
                                       Answer end) = 0;
};

}  // namespace kube
