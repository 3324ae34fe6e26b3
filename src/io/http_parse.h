// Bytes of a connection → requests (HTTP/1.0 and 1.1). Pure; the fuzz target is http_request_fuzz.
//
// Strict: what two readers could understand in two ways is refused, since requests are smuggled
// past proxies that way. Not taken: a bare LF, folded headers, a space before the colon; Host
// missing, twice, or not a host name; Content-Length twice or beside Transfer-Encoding; any
// Transfer-Encoding but "chunked"; any target but a path of visible ASCII; trailers (dropped).
//
//   pending.append(bytes);
//   pending.erase(0, parser.Put(pending));
//   if (parser.state() == HttpParser::State::kDone) Serve(parser.Take());
#pragma once

#include <memory>
#include <string_view>

#include "io/http_message.h"

namespace io {

class HttpParser {
 public:
  struct Limits {
    size_t head = 16 << 10;  // bytes of the request line and headers
    size_t headers = 100;
    size_t body = 0;  // bytes
  };

  enum class State {
    kIdle,  // nothing of a request has come
    kHead,
    kBody,
    kDone,     // Take it
    kRefused,  // for good: what follows cannot be told apart any more
  };

  explicit HttpParser(Limits limits);
  ~HttpParser();

  // Takes bytes from the front, at most to the end of one request, and returns how many. Those it
  // leaves are to be offered again with more behind them; it never leaves more than limits.head
  // without being done or refusing.
  size_t Put(std::string_view bytes);

  State state() const;
  // Of the request that is done: whether another one may follow. Only before Take.
  bool keep_alive() const;
  // The client waits for "100 Continue" before it sends the body. True once a request.
  bool TakeContinue();
  // The request that is done. Begins anew.
  ServerRequest Take();
  // What to answer to what was refused.
  ServerResponse Refusal() const;

 private:
  class Message;
  Limits limits_;
  std::unique_ptr<Message> message_;
};

}  // namespace io
