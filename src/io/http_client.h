// Many requests to servers at once, without a thread: the owner calls Poll, which waits, moves
// every transfer along and hands out what has come. Nothing is handed out from anywhere else.
//
// Connections are kept and used again; a request that finds its kept connection closed by the
// server is sent once more over a new one. TLS is verified (curl_easy.h has the rules). Answers are
// bounded in size, and everything has an end in time: a request by its timeout, counted from Send,
// a stream by how long it may be silent.
//
// One thread, but Wake. Callbacks may call Send, Open and Cancel, not Poll, and must not destroy
// the client. At its end, what is still under way is dropped without a word.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <poll.h>

#include "base/result.h"
#include "base/time.h"
#include "io/http.h"

namespace io {

class HttpClient {
 public:
  struct Options {
    Tls tls;
    std::string proxy;              // "http://proxy:3128"; empty: none, whatever HTTPS_PROXY says
    size_t requests_at_once = 32;   // connections used by Send; more wait their turn
    size_t streams_at_once = 1024;  // more are refused
    size_t most_body = size_t{64} << 20;  // bytes of an answer; a stream has no bound
    size_t most_head = size_t{64} << 10;  // bytes of its headers
  };

  using Id = uint64_t;
  // An error means that no whole answer came.
  using Answer = std::move_only_function<void(base::Result<HttpResponse>)>;
  using Data = std::move_only_function<void(std::string_view bytes)>;

  explicit HttpClient(Options options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // `answer` is called once, at the latest after `timeout`.
  Id Send(HttpRequest request, base::Duration timeout, Answer answer);

  // `data` gets the bytes of an answer of the 200s as they come, `end` the rest: the response
  // without a body when the server ended the stream, the response with it when the status is
  // another, an error when the connection broke or nothing at all came for `silence`.
  Id Open(HttpRequest request, base::Duration silence, Data data, Answer end);

  // Its callbacks are not called any more. What is over or unknown is ignored.
  void Cancel(Id id);

  // For requests that begin from now on.
  void set_tls(Tls tls);

  // Waits until something happens, at most `timeout`, and hands out what there is. `extra`
  // descriptors end the wait as well, and have their `revents` set as by poll(2).
  void Poll(base::Duration timeout, std::span<pollfd> extra = {});

  // Ends the present wait or else the next one. From any thread and from signal handlers.
  void Wake();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace io
