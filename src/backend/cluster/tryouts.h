// The server's own word on pod templates, before anything is made of them: one dry run a template
// that it takes, however many jobs bring it.
//
// One thread.
#pragma once

#include <set>
#include <unordered_map>

#include "backend/cluster/deeds.h"

namespace backend::cluster {

class Tryouts {
 public:
  using Wake = std::function<void(const Key& job)>;

  Tryouts(Deeds& deeds, Wake wake) : deeds_(deeds), wake_(std::move(wake)) {}

  // Another job's try of the same template is under way. This one is woken when it is over.
  bool Waits(const api::Job& job, api::Role role);
  // Whether the server would take a pod of this role: kInvalid when it never will. `done` is called
  // at once when that is known.
  void Try(const Deeds::JobPtr& job, api::Role role, Deeds::Done done);

 private:
  struct Template {
    enum { kAsked, kTaken, kNotTaken } word = kAsked;
    std::set<Key> waiting;
  };

  Deeds& deeds_;
  const Wake wake_;
  std::unordered_map<size_t, Template> templates_;  // by hash
};

}  // namespace backend::cluster
