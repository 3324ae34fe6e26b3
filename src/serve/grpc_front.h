// TensorFlow Serving's gRPC services: PredictionService and ModelService.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "serve/guard.h"
#include "serve/models.h"

namespace serve {

struct GrpcOptions {
  std::string host;  // an address
  uint16_t port = 0;
  size_t most_bytes = 64 << 20;  // of a request
  std::string certificate, key;  // PEM; empty: no TLS
  bool may_reload = false;       // a client may say which models are served
};

class GrpcServer {
 public:
  static base::Result<std::unique_ptr<GrpcServer>> Listen(const GrpcOptions& options,
                                                          Models& models, Counters& counters,
                                                          const Guard& guard);
  ~GrpcServer();

  uint16_t port() const;
  // No more requests; those that are here get that long.
  void Stop(base::Duration patience);

 private:
  class Services;
  explicit GrpcServer(std::unique_ptr<Services> services);
  std::unique_ptr<Services> services_;
};

}  // namespace serve
