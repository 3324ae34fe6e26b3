// Tells what happened to an object as Events of the cluster, for `kubectl describe`.
//
// As client-go does it: the same event again raises the count of the first one; the tenth different
// message of one reason within 10 minutes, and those after it, become one event "(combined from
// similar events): ..."; after 25 events an object gets one more each 5 minutes. Users of the Go
// operator see what they are used to. Unlike there, warnings are counted apart: the creation of 100
// services does not hide that the pods are rejected.
//
// A step machine: Record only notes, Advance sends. It never holds anybody up and its memory is
// bounded: what does not get through, or is too much, is dropped and counted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "kube/transport.h"

namespace kube {

// The object that an event is about.
struct About {
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string name;
  std::string uid;
};

class Events {
 public:
  // `component` is who tells it: "tfjob-controller". `at_once`: requests under way.
  Events(Transport& transport, std::string component, size_t at_once = 4);
  ~Events();

  // `type` is "Normal" or "Warning".
  void Record(const About& about, const std::string& type, const std::string& reason,
              const std::string& message, base::Time now);

  void Advance(base::Time now);
  // When Advance has something to do next; nothing: when an answer has come, or never.
  std::optional<base::Time> next() const;
  // Nothing is left to send.
  bool idle() const;

  uint64_t dropped() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kube
