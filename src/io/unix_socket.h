// One request, one answer, over a socket file: how a verb reaches a job's supervisor.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "io/files.h"

namespace io {

// A listening socket file, removed at the end. Only the owner may connect. Paths over 107 bytes do not bind.
class RequestServer {
 public:
  static base::Result<RequestServer> Listen(const std::string& path);
  RequestServer(RequestServer&&) = default;
  RequestServer& operator=(RequestServer&&) = default;
  ~RequestServer();

  int fd() const { return fd_.get(); }
  // Takes one waiting connection, reads its line, sends what `answer` returns. A client that says nothing for a second,
  // or more than 64 KiB, is dropped.
  void Serve(const std::function<std::string(const std::string&)>& answer);

 private:
  RequestServer(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Fd fd_;
  std::string path_;
};

// Holds a name that only one process of the network namespace can hold, until the descriptor is
// closed or its owner is gone. Not valid: somebody else holds it. At most 107 bytes.
Fd HoldName(const std::string& name);

// kUnavailable: nobody listens.
base::Result<std::string> Request(const std::string& path, const std::string& line);

}  // namespace io
