// What an API server refuses to store: the rules for fields that we rely on, and no others.
#pragma once

#include "backend/sim/api_status.h"
#include "base/json.h"

namespace backend::sim {

// Of an object that is about to be created, its defaults filled in.
FieldErrors WrongOnCreate(const Resource& resource, const base::Json& object);
// Of an object that is about to replace `old`. Both have their defaults filled in.
FieldErrors WrongOnUpdate(const Resource& resource, const std::string& subresource,
                          const base::Json& object, const base::Json& old);

}  // namespace backend::sim
