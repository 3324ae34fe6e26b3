// TensorFlow Serving's REST interface, health, metrics: requests to answers.
//
//   GET  /v1/models/M[/versions/N|/labels/L]             status
//   GET  /v1/models/M[/versions/N|/labels/L]/metadata
//   POST /v1/models/M[/versions/N|/labels/L]:predict     and :classify, :regress
//   GET  /v1/models                                      their names
//   GET  /                                               the page to try a model, without a token
//   GET  /healthz  /readyz  /readyz/M                    without a token
//   GET  /metrics  /monitoring/prometheus/metrics
//
// Called on the HTTP server's thread; answers come from others.
#pragma once

#include <string>

#include "io/http_message.h"
#include "serve/ask.h"
#include "serve/counters.h"
#include "serve/guard.h"
#include "serve/models.h"

namespace serve {

// What follows "/v1/models/" in a path.
struct ModelPath {
  Target target;
  std::string rest;  // "/metadata", ":predict"
};
Answer<ModelPath> ParseModelPath(std::string_view path);

class RestFront {
 public:
  // `timeout`: a request that has not run by then is dropped. `most_bytes`: of a body, unpacked.
  RestFront(const Models& models, Counters& counters, const Guard& guard, base::Duration timeout,
            size_t most_bytes)
      : models_(models),
        counters_(counters),
        guard_(guard),
        timeout_(timeout),
        most_bytes_(most_bytes) {}

  void Handle(io::ServerRequest request, io::Reply reply);

 private:
  io::ServerResponse Get(const io::ServerRequest& request) const;
  Answer<std::string> GetModel(std::string_view path) const;
  void Post(const io::ServerRequest& request, io::Reply reply) const;
  Answer<> Begin(const ModelPath& path, const io::ServerRequest& request, io::Reply& reply) const;

  const Models& models_;
  Counters& counters_;
  const Guard& guard_;
  const base::Duration timeout_;
  const size_t most_bytes_;
};

// What a client gets when the timeout has passed.
io::ServerResponse LateResponse(base::Duration timeout);

}  // namespace serve
