#include "controller/step.h"

#include <algorithm>

#include "core/planted_bugs.h"

namespace controller {

Turn Step(backend::Backend& world, api::Job& job, const core::Policy& policy, base::Time now) {
  Turn turn;
  core::Decision decision = core::Reconcile(job, world.Observe(job), policy, now);
  turn.look_again = decision.look_again;
  const auto perform = [&](const core::Action& a) { return world.Perform(job, a).has_value(); };
  if (BUG(kPublishLate)) std::ranges::all_of(decision.actions, perform);
  if ((decision.status != job.status && !BUG(kPublishSeldom)) || !decision.events.empty()) {
    if (auto published = world.Publish(job, decision.status, decision.events);
        !published && !BUG(kPerformUnpublished)) {
      turn.error = std::move(published).error();
      return turn;
    }
    job.status = std::move(decision.status);
  }
  for (const core::Action& action : decision.actions) {
    if (auto done = world.Perform(job, action); !done) {
      turn.error = std::move(done).error();
      return turn;
    }
    turn.acted = true;
    turn.removed |= std::holds_alternative<core::Remove>(action);
  }
  return turn;
}

}  // namespace controller
