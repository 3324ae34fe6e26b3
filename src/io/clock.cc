#include "io/clock.h"

#include <ctime>

namespace io {
namespace {

base::Duration Read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::duration_cast<base::Duration>(std::chrono::seconds(time.tv_sec) +
                                                    std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace

base::Duration ClockOffset() {
  static const base::Duration offset = Read(CLOCK_REALTIME) - Read(CLOCK_BOOTTIME);
  return offset;
}

base::Time Now() { return base::Time(Read(CLOCK_BOOTTIME) + ClockOffset()); }

base::Time Wall() { return base::Time(Read(CLOCK_REALTIME)); }

}  // namespace io
