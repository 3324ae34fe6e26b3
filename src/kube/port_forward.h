// A port of this machine, on loopback, that is a port of a pod, as `kubectl port-forward`.
//
// Each connection made to it becomes a WebSocket of its own to the API server (v4.channel.k8s.io:
// every server since 1.5 has it, and 1.34 was tried). That protocol has no end of one direction:
// when the local side has said its last, the pod's answer is waited for until it has been quiet for
// 5 seconds.
//
// One thread: the owner waits for what Waits() names and calls Advance. Opening a connection to the
// server waits for it.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "base/result.h"
#include "base/time.h"
#include "io/files.h"
#include "kube/server.h"

namespace kube {

class PortForward {
 public:
  struct Target {
    std::string ns, pod;
    int port = 0;
  };

  // `local_port` 0: any that is free.
  static base::Result<std::unique_ptr<PortForward>> Listen(Server& server, Target target,
                                                           int local_port = 0);
  ~PortForward();

  int port() const { return port_; }
  size_t connections() const { return bridges_.size(); }

  std::vector<pollfd> Waits() const;
  // When to call Advance at the latest, whatever happens.
  std::optional<base::Time> next() const;
  void Advance(base::Time now);
  // Of the last connection that failed; empty: none did.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Bridge;

  PortForward(Server& server, Target target);
  void Accept(base::Time now);
  bool Move(Bridge& bridge, base::Time now);

  Server& server_;
  Target target_;
  io::Fd listener_;
  int port_ = 0;
  std::list<Bridge> bridges_;
  std::string trouble_;
};

}  // namespace kube
