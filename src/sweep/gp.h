// A Gaussian process over small spaces of numbers: fewer trials than any other way, at more work
// for each.
#pragma once

#include <vector>

#include "sweep/search.h"

namespace sweep {

// What was fitted before, so that a fit begins where the last one ended. It follows from the trials
// alone: with an empty one the same point comes out, later.
struct GpMemory {
  int fitted = -1;            // the number of the trial it was fitted for
  std::vector<double> hyper;  // log of the length scales, the variance and the noise
};

std::vector<double> GpPoint(const Settings& settings, const std::vector<Trial>& trials, int number,
                            GpMemory& memory);

}  // namespace sweep
