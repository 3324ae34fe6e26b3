// Runs a command in a container of a pod, as `kubectl exec`.
//
// Starting waits until the server has answered; afterwards the owner waits for fd() and calls
// Advance, as with io::WebSocket. The end of it ends the connection, and what was run gets to know
// of that only when it reads or writes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/websocket.h"
#include "kube/server.h"

namespace kube {

class Exec {
 public:
  struct Target {
    std::string ns, pod, container;  // container empty: the pod's first
    std::vector<std::string> command;
    bool input = false;
    bool terminal = false;  // then all output is standard output
  };

  static base::Result<std::unique_ptr<Exec>> Start(Server& server, const Target& target);

  int fd() const { return socket_->fd(); }
  bool wants_write() const { return socket_->wants_write(); }
  bool more() const { return socket_->more(); }

  void Write(std::string_view input);
  size_t queued() const { return socket_->queued(); }
  // The end of its input. Servers before 1.30 know no such thing: false.
  bool CloseInput();
  void Resize(int columns, int rows);  // of its terminal

  // `output` gets what came, with 1 or 2 for where it was written.
  base::Result<> Advance(const std::function<void(int fd, std::string_view bytes)>& output);
  // Of the command, once it has ended; an error when it could not be run.
  const std::optional<base::Result<int>>& status() const { return status_; }

 private:
  explicit Exec(std::unique_ptr<io::WebSocket> socket) : socket_(std::move(socket)) {}

  std::unique_ptr<io::WebSocket> socket_;
  std::optional<base::Result<int>> status_;
};

// What the server says at the end of a command, as JSON.
base::Result<int> ReadExecStatus(std::string_view text);

}  // namespace kube
