// Collects what one turn created, and what the server refused to create, and turns it into events.
//
// Each of a few objects gets an event of its own, as from training-operator. Many of one kind share
// one event: an event is a write to the server like any other, and an object's events are limited
// (kube/events.h), so that a job of 100 replicas would lose those that matter.
//
// One thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/reconcile.h"

namespace backend::cluster {

class Creations {
 public:
  // `kind` as in the reason of the event: "Pod", "Service".
  void Created(const std::string& kind, const std::string& name) { kinds_[kind].names.insert(name); }
  void Refused(const std::string& kind, const base::Error& error) {
    kinds_[kind].errors.insert(error.text());
  }

  // Returns the events, those of refusals last, and forgets what was collected.
  std::vector<core::Event> TakeEvents();

 private:
  struct Kind {
    std::set<std::string> names, errors;
  };
  std::map<std::string, Kind> kinds_;
};

}  // namespace backend::cluster
