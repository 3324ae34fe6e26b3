#include "io/clock.h"

#include <gtest/gtest.h>

#include "io/testing/clock_step.h"

namespace io {
namespace {

using base::Duration;

TEST(Clock, AStepOfTheWallClockDoesNotChangeNow) {
  for (const Duration step : testing::kClockSteps) {
    const auto began = std::chrono::steady_clock::now();
    const base::Time before = Now();
    const testing::ClockStep stepped(step);
    const Duration passed = Now() - before;
    const auto took = std::chrono::ceil<Duration>(std::chrono::steady_clock::now() - began);
    EXPECT_GE(passed, Duration(0)) << step.count();
    EXPECT_LE(passed, took) << step.count();
  }
}

}  // namespace
}  // namespace io
