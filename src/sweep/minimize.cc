#include "sweep/minimize.h"

#include <algorithm>
#include <cmath>

namespace sweep {
namespace {

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The inverse of the second derivatives, as far as the steps so far tell.
class Curvature {
 public:
  explicit Curvature(size_t n) : n_(n), inverse_(n * n) { Reset(); }

  void Reset() {
    std::ranges::fill(inverse_, 0.0);
    for (size_t i = 0; i < n_; ++i) inverse_[i * n_ + i] = 1;
    fresh_ = true;
  }
  bool fresh() const { return fresh_; }

  Vector Times(const Vector& v) const {
    Vector product(n_, 0.0);
    for (size_t i = 0; i < n_; ++i) {
      for (size_t j = 0; j < n_; ++j) product[i] += inverse_[i * n_ + j] * v[j];
    }
    return product;
  }

  void Learn(const Vector& step, const Vector& change) {
    const double along = Dot(step, change);
    if (!(along > 1e-12)) return;
    if (fresh_) {
      const double scale = along / Dot(change, change);
      for (double& x : inverse_) x *= scale;
    }
    fresh_ = false;
    const Vector turned = Times(change);
    const double factor = (along + Dot(change, turned)) / (along * along);
    for (size_t i = 0; i < n_; ++i) {
      for (size_t j = 0; j < n_; ++j) {
        inverse_[i * n_ + j] +=
            factor * step[i] * step[j] - (turned[i] * step[j] + step[i] * turned[j]) / along;
      }
    }
  }

 private:
  size_t n_;
  Vector inverse_;
  bool fresh_ = true;
};

}  // namespace

Vector Minimize(const Smooth& function, Vector x, double low, double high, int evaluations,
                double* value) {
  constexpr double kFirstStep = 0.3;  // of the length of x, at most
  Vector gradient(x.size()), next_gradient(x.size());
  double here = function(x, gradient);
  Curvature curvature(x.size());
  for (int used = 1; used < evaluations;) {
    // What would leave the bounds stays.
    Vector pull = gradient;
    for (size_t i = 0; i < x.size(); ++i) {
      if ((x[i] <= low && pull[i] > 0) || (x[i] >= high && pull[i] < 0)) pull[i] = 0;
    }
    const double steep = Dot(pull, pull);
    if (!(steep > 1e-14)) break;
    Vector direction = curvature.Times(pull);
    if (!(Dot(direction, pull) > 0)) {
      curvature.Reset();
      direction = pull;
    }
    double length = curvature.fresh() ? std::min(1.0, kFirstStep / std::sqrt(steep)) : 1.0;
    bool moved = false;
    for (; used < evaluations && length > 1e-6; length *= 0.4) {
      Vector next = x;
      for (size_t i = 0; i < x.size(); ++i) {
        next[i] = std::clamp(x[i] - length * direction[i], low, high);
      }
      const double there = function(next, next_gradient);
      ++used;
      double expected = 0;
      for (size_t i = 0; i < x.size(); ++i) expected += pull[i] * (x[i] - next[i]);
      if (!(there <= here - 1e-4 * expected) || !(there < here)) continue;
      Vector step(x.size()), change(x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        step[i] = next[i] - x[i];
        change[i] = next_gradient[i] - gradient[i];
      }
      moved = here - there > 1e-9 * (std::fabs(here) + 1);
      curvature.Learn(step, change);
      x = std::move(next);
      gradient = next_gradient;
      here = there;
      break;
    }
    if (!moved) break;
  }
  if (value) *value = here;
  return x;
}

}  // namespace sweep
