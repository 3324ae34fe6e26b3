// The one place that reads the wall clock.
#pragma once

#include "base/time.h"

namespace io {

base::Time Now();

}  // namespace io
