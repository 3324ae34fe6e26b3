// The rules for names, labels and the like, and what an API server says about those that break
// them. Each function returns what is wrong, one sentence a fault; empty: nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/sim/api_resource.h"

namespace backend::sim {

using Faults = std::vector<std::string>;

Faults WrongName(NameRule rule, std::string_view name);
Faults WrongQualifiedName(std::string_view name);  // keys of labels and annotations, finalizers
Faults WrongLabelValue(std::string_view value);
Faults WrongPortName(std::string_view name);

}  // namespace backend::sim
