// What an API server fills in by itself: the defaults of the fields that are left out, and the
// status that a new object begins with.
//
// Of a pod's volumes, probes and security nothing is filled in, and no service account token is
// mounted: nothing of ours looks there.
#pragma once

#include "backend/sim/api_resource.h"
#include "base/json.h"

namespace backend::sim {

void FillDefaults(const Resource& resource, base::Json& object);
// The status is the server's to begin with, whatever the request said.
void BeginStatus(const Resource& resource, base::Json& object);

}  // namespace backend::sim
