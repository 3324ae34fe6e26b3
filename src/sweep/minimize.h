// A small quasi-Newton minimizer (BFGS) within bounds, for smooth functions of a few variables.
#pragma once

#include <functional>
#include <vector>

namespace sweep {

// The value at x; sets the gradient.
using Smooth = std::function<double(const std::vector<double>& x, std::vector<double>& gradient)>;

// The best x found from `start` with at most `evaluations` of the function.
std::vector<double> Minimize(const Smooth& function, std::vector<double> start, double low,
                             double high, int evaluations, double* value = nullptr);

}  // namespace sweep
