// Leader election among several operators: who holds a coordination.k8s.io/v1 Lease leads.
//
// As client-go does it: the holder renews every 2 seconds, and stops leading when it did not get
// that through for 10; others take the lease once it has not changed for the 15 seconds it says, by
// their own clock. The times in the lease are for people: no decision uses them. A write names the
// version it was decided on, so two cannot take it at once. An operator that is paused may still
// believe for a moment that it leads: nothing may depend on the lease for being right.
//
// A step machine, as Watch: Advance does what is due.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "kube/transport.h"

namespace kube {

class Lease {
 public:
  struct Options {
    std::string ns;
    std::string name = "trainyard-operator";
    std::string identity;  // of this process and no other
    base::Duration duration = std::chrono::seconds(15);
    base::Duration renew_within = std::chrono::seconds(10);
    base::Duration retry = std::chrono::seconds(2);
  };

  Lease(Transport& transport, Options options);
  ~Lease();

  void Advance(base::Time now);
  // When Advance has something to do next. Its owner must not be later, to stop leading in time.
  base::Time next() const;

  // As of the last Advance.
  bool leads() const;
  const std::string& holder() const;   // as last seen; empty: nobody
  const std::string& trouble() const;  // why it does not get through; empty: it does

  // Gives it up, so that another need not wait, and takes it no more. Over when released().
  void Release();
  bool released() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kube
