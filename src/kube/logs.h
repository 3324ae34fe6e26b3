// The log of a container, as `kubectl logs`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "kube/transport.h"

namespace kube {

struct LogQuery {
  std::string ns, pod, container;  // container empty: the pod's only one
  bool follow = false;
  bool timestamps = false;
  bool previous = false;  // of the container before its last restart
  std::optional<int64_t> tail_lines, since_seconds;
  std::string uid = "";  // followed is this very pod, not a successor of its name; empty: either
};

// Where to GET it: as text, not JSON.
std::string LogPath(const LogQuery& query);

// Follows the log of a container to its last line, over breaks of the connection and over restarts
// of the container in its pod: no line is told twice or left out, as long as the node still has
// them. A container that has not started yet is waited for. A step machine, as Watch.
//
// A server or a node that has just come up refuses what it will grant in a moment. So where the pod
// is known by its UID a refusal is taken for one only when it has lasted half a minute, and the pod
// is looked at in between.
class LogFollow {
 public:
  // A line without its end, and when it was written, as the node writes it. Lines over 1 MiB come
  // in pieces.
  using Line = std::function<void(std::string_view line, std::string_view when)>;

  // `query.follow` and `query.timestamps` are taken as set.
  LogFollow(Transport& transport, LogQuery query, Line line);
  ~LogFollow();

  void Advance(base::Time now);
  // When Advance has something to do next; nothing: when bytes have come, or it is over.
  std::optional<base::Time> next() const;
  // Something is known to have changed: asks at once, whatever was waited for.
  void Hurry();

  bool ended() const;                               // the container has, or the log cannot be had
  const std::optional<base::Error>& error() const;  // the last; over if ended()

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kube
