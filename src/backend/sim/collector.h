// The garbage collector of a cluster: removes what belongs to nobody any more.
//
//   owner gone                           its dependents are deleted (background)
//   owner waits (foregroundDeletion)     dependents first; the owner when none is left that blocks
//   owner lets go (orphan)               the references to it are taken off, then it goes
//
// A client like any other, with its own delay. One thread.
#pragma once

#include "backend/sim/agenda.h"
#include "backend/sim/api_server.h"
#include "backend/sim/random.h"

namespace backend::sim {

class Collector {
 public:
  // Begins to look at the server's changes. All must outlive the last entry of the agenda.
  Collector(Agenda& agenda, ApiServer& server, Random& random);
  Collector(const Collector&) = delete;

 private:
  void Soon();
  void Scan();
  void ScanDependent(const Resource& resource, const base::Json& object);
  void ScanOwner(const Resource& resource, const base::Json& object);

  Agenda& agenda_;
  ApiServer& server_;
  Random& random_;
  bool planned_ = false;
};

}  // namespace backend::sim
