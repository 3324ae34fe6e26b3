// How much each parameter matters to the result. Pure.
#pragma once

#include <vector>

#include "sweep/trial.h"

namespace sweep {

// A share for each parameter, summing to 1, of how far the ranks of trials differ between its
// values (correlation ratio, freed of what chance alone gives). Pruned trials rank behind complete
// ones, those that got farther first. A conditional parameter is judged by the trials in which it
// is active, and counts by their part of all differences. Empty when there are too few to say, or
// nothing matters.
std::vector<double> Importance(const Settings& settings, const std::vector<Trial>& trials);

}  // namespace sweep
