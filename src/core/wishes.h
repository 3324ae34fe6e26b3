// What people wish of a job beside its spec: that it ends, that it runs again.
//
// Whoever keeps a job may be told directly (core/reconcile.h: Stopped, Revived). Where only the
// object can be reached, the wish is an annotation on it, heeded at the next pass and once: the
// status remembers.
#pragma once

#include <optional>
#include <vector>

#include "api/tfjob.h"
#include "base/time.h"
#include "core/reconcile.h"

namespace core {

struct Heeded {
  api::JobStatus status;
  std::vector<Event> events;
};

// Nothing when there is no wish that the status does not know yet.
std::optional<Heeded> Heed(const api::Job& job, base::Time now);

// It has ended, and nobody has asked for another life of it.
bool IsOver(const api::Job& job);

// Somebody stopped it: nothing of it shall go on, whatever its cleanPodPolicy.
bool WasStopped(const api::JobStatus& status);

}  // namespace core
