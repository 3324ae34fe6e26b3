// How to reach an API server, and as whom: what a kubeconfig, or the service account of a pod,
// comes down to. Holds secrets: never to be printed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/http.h"

namespace kube {

// A program that prints a credential (client.authentication.k8s.io).
struct ExecPlugin {
  std::string command;  // as it was written
  std::string program;  // the file that is run
  std::vector<std::string> args;
  std::vector<std::string> env;  // "KEY=value", beside our own environment
  std::string api_version;
  bool wants_cluster = false;  // to be told which server it is for
};

struct Access {
  std::string context;         // its name
  std::string ns = "default";  // the namespace meant when none is named
  std::string server;          // "https://10.0.0.1:6443", without a slash at its end
  io::Tls tls;                 // with the client's certificate, if it has one
  std::string proxy;

  // At most one of these four.
  std::string token;
  std::string token_file;
  std::string username, password;
  std::optional<ExecPlugin> exec;

  std::vector<std::string> warnings;  // to show each time
};

}  // namespace kube
