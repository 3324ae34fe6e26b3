// Waiting for something on a cluster, and what a person sees meanwhile: after two seconds what is
// waited for, and the reason why it does not come as soon as one is known.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/cluster.h"
#include "cli/place.h"

namespace cli {

// Asks until `holds` is true. `why` returns the reason why it does not hold yet, if one is known: it
// is printed at once, and an image that cannot be had is waited for only half a minute. An error:
// interrupted, out of time (with the reason), or the error of `holds`.
base::Result<> WaitFor(Cluster& cluster, const std::string& what, base::Time until,
                       const std::function<base::Result<bool>()>& holds,
                       const std::function<std::optional<Trouble>()>& why = nullptr);

}  // namespace cli
