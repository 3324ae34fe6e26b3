#include "sweep/minimize.h"

#include <cmath>

#include <gtest/gtest.h>

namespace sweep {
namespace {

double Rosenbrock(const std::vector<double>& x, std::vector<double>& gradient) {
  const double a = 1 - x[0], b = x[1] - x[0] * x[0];
  gradient = {-2 * a - 400 * x[0] * b, 200 * b};
  return a * a + 100 * b * b;
}

TEST(Minimize, FollowsACurvedValley) {
  double value = 0;
  const std::vector<double> x = Minimize(Rosenbrock, {-1.2, 1}, -5, 5, 200, &value);
  EXPECT_NEAR(x[0], 1, 1e-3);
  EXPECT_NEAR(x[1], 1, 1e-3);
  EXPECT_LT(value, 1e-6);
}

TEST(Minimize, StaysWithinTheBounds) {
  const std::vector<double> x = Minimize(Rosenbrock, {0, 0}, -0.5, 0.5, 200);
  EXPECT_NEAR(x[0], 0.5, 1e-3);
  EXPECT_NEAR(x[1], 0.25, 1e-3);
}

TEST(Minimize, GivesBackItsStartWhereThereIsNothingToFollow) {
  const auto nowhere = [](const std::vector<double>&, std::vector<double>& gradient) {
    gradient = {std::nan("")};
    return std::nan("");
  };
  EXPECT_EQ(Minimize(nowhere, {0.25}, 0, 1, 20), std::vector<double>{0.25});
}

}  // namespace
}  // namespace sweep
