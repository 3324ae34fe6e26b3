// Tells what happened to an object, as events that `kubectl describe` shows.
//
// Spares the server as Kubernetes' own controllers do: the same words again raise a count; many of
// one reason become one that says so; and an object that never stops is told of less and less. What
// cannot be sent in time is dropped and counted: events are news, never a record that anything
// rests on.
//
// A step machine like the rest of this folder: Tell() notes, Advance() sends.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "base/time.h"
#include "kube/transport.h"

namespace kube {

struct ObjectRef {
  std::string api_version;
  std::string kind;
  std::string name_space;
  std::string name;
  std::string uid;
};

class Events {
 public:
  // `component` is who tells: "tfjob-controller".
  Events(Transport& transport, std::string component);
  ~Events();

  void Tell(const ObjectRef& about, bool warning, const std::string& reason,
            const std::string& message);

  void Advance(base::Time now);
  std::optional<base::Time> next() const;

  uint64_t dropped() const { return dropped_; }

 private:
  struct News {
    ObjectRef about;
    bool warning = false;
    std::string reason;
    std::string message;
  };
  // An event on the server that may be told again.
  struct Told {
    std::string path;
    int64_t count = 1;
    base::Time first;
  };
  // How much was told of one object, and of one reason of it, lately.
  struct Allowance {
    double tokens = 0;
    base::Time refilled;
  };
  struct Alike {
    int32_t number = 0;
    base::Time since;
  };
  using Words = std::tuple<std::string, std::string, std::string>;  // UID, reason, message
  struct Shared;

  bool MayTell(const ObjectRef& about, base::Time now);
  void Send(News news, base::Time now);
  void Forget();

  Transport& transport_;
  const std::string component_;
  std::deque<News> waiting_;
  std::map<Words, Told> told_;
  std::map<std::string, Allowance> allowances_;                 // by UID
  std::map<std::pair<std::string, std::string>, Alike> alike_;  // by UID and reason
  uint64_t dropped_ = 0;
  uint64_t number_ = 0;
  std::shared_ptr<Shared> shared_;  // with the answers under way, which may outlive this
};

}  // namespace kube
