// The whole server: models, gRPC, REST; until it is told to stop.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "serve/config.h"
#include "serve/servable.h"

namespace serve {

struct ServerOptions {
  std::vector<ModelConfig> models;
  std::string config_file;
  std::string host = "127.0.0.1";
  uint16_t port = 8500;
  uint16_t rest_port = 8501;
  size_t most_bytes = 64 << 20;  // of a request
  base::Duration poll = std::chrono::seconds(1);
  base::Duration rest_timeout = std::chrono::seconds(30);  // as TensorFlow Serving
  std::string token;             // empty: none is asked for
  std::string certificate, key;  // PEM; empty: no TLS
  bool json = false;             // says what happens in JSON
  Engine engine;
};

// As the program that starts a server hands it over.
base::Result<ServerOptions> OptionsFromJson(const base::Json& json);

// Prints what is served, and where, until `signal` says that it is to stop: 0, or which signal has
// come within its patience. The exit status.
int Serve(const ServerOptions& options, const std::function<int(base::Duration patience)>& signal);

}  // namespace serve
