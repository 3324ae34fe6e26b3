// The list of conditions of a TFJob, and how it changes: training-operator v1.9's rules, since
// clients read the order.
#pragma once

#include <string>

#include "api/status.h"

namespace core {

// Adds or replaces a condition:
//   - once Failed is True nothing changes any more;
//   - the same type, status and reason again is no change at all;
//   - otherwise the entry is removed and the new one appended, with the transition time kept when
//   only the reason changed;
//   - Running and Restarting drive each other out; Succeeded and Failed turn what contradicts them
//   (Running, Restarting, Suspended) to False in place.
void SetCondition(api::JobStatus& status, std::string type, bool value, std::string reason,
                  std::string message, base::Time now);

}  // namespace core
