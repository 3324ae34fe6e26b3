// Changes of objects as a client words them.
#pragma once

#include "backend/sim/api_status.h"
#include "base/json.h"

namespace backend::sim {

// RFC 7386: what is named is replaced, null removes, lists are replaced whole.
base::Json MergePatched(const base::Json& object, const base::Json& patch);

// Kubernetes' own, as far as we use it: maps merge; of lists only metadata.finalizers (a set) and
// metadata.ownerReferences (merged by uid) are known, with $deleteFromPrimitiveList, $patch:
// delete and $setElementOrder (which is not looked at).
Outcome<base::Json> StrategicPatched(const base::Json& object, const base::Json& patch);

}  // namespace backend::sim
