// What a world must offer so that jobs can live in it: processes on this machine, pods on a
// cluster, or the simulator.
//
// Thread-safety: a backend is used by one thread. Ownership: a backend outlives what it is asked
// about.
#pragma once

#include <vector>

#include "api/tfjob.h"
#include "base/result.h"
#include "core/observed.h"
#include "core/reconcile.h"

namespace backend {

class Backend {
 public:
  virtual ~Backend() = default;

  // What is known of the job's replicas now. Never invented, and stale only in what the world did
  // by itself: never older than an earlier answer, nor than what Perform has done (also for a
  // controller that crashed since). An incarnation that nobody was shown does not vanish.
  virtual core::Observed Observe(const api::Job& job) = 0;

  // Makes the status durable, and the events known. Refused (kTaken) when the stored status is no
  // longer the one that the decision was based on. After an error nothing was changed that matters.
  virtual base::Result<> Publish(const api::Job& job, const api::JobStatus& status,
                                 const std::vector<core::Event>& events) = 0;

  // Does one thing. Doing it twice is harmless.
  virtual base::Result<> Perform(const api::Job& job, const core::Action& action) = 0;
};

}  // namespace backend
