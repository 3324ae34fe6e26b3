// What Prometheus wants to know about every process: memory, CPU, descriptors, when it began.
#pragma once

#include "base/metrics.h"

namespace io {

// Read from the system each time the page is made. What cannot be read is NaN.
void AddProcessMetrics(base::Metrics& metrics);

}  // namespace io
