// One turn of the control loop: observe, decide, publish, perform.
//
// The order is what makes a crash harmless: the status is durable before the first action that
// rests on it, and every action can be derived again from (status, world). No other code decides
// anything.
#pragma once

#include <optional>

#include "api/tfjob.h"
#include "backend/backend.h"
#include "base/result.h"
#include "base/time.h"
#include "core/reconcile.h"

namespace controller {

struct Turn {
  bool acted = false;  // something was done
  // Something is out of the way, and the world will not say so by itself: look again at once. (It
  // answers starts and stops in its own time; hard stops are repeated every turn until then.)
  bool removed = false;
  std::optional<base::Time> look_again;  // at this time at the latest
  std::optional<base::Error>
      error;  // publishing or an action failed; what is left undone comes again next turn
};

// Brings `job.status` up to date with what was published. After an error the caller reads the job
// again before the next turn: a publish whose answer was lost may have been stored.
Turn Step(backend::Backend& world, api::Job& job, const core::Policy& policy, base::Time now);

}  // namespace controller
