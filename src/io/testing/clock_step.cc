#include "io/testing/clock_step.h"

#include <atomic>
#include <ctime>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

std::atomic<time_t> step_seconds = 0;

}  // namespace

// The C library's own is not called any more by anybody in this program, libstdc++ included.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += step_seconds;
  return static_cast<int>(result);
}

namespace io::testing {

ClockStep::ClockStep(base::Duration step) {
  step_seconds = std::chrono::floor<std::chrono::seconds>(step).count();
}

ClockStep::~ClockStep() { step_seconds = 0; }

}  // namespace io::testing
