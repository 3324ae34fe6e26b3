// Steps the wall clock of a test, as somebody does who sets the time of the machine.
#pragma once

#include "base/time.h"

namespace io::testing {

// While it lives, the wall clock of this process differs by `step` from the machine's: programs that
// link this have a clock_gettime of their own.
class ClockStep {
 public:
  explicit ClockStep(base::Duration step);
  ~ClockStep();
  ClockStep(const ClockStep&) = delete;
  ClockStep& operator=(const ClockStep&) = delete;
};

// The steps that every user of a clock is tested with.
inline constexpr base::Duration kClockSteps[] = {std::chrono::seconds(1), std::chrono::seconds(-1),
                                                 std::chrono::hours(1), std::chrono::hours(-1)};

}  // namespace io::testing
