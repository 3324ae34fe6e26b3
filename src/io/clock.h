// The clocks of this machine. No other file reads one, except to time something with steady_clock.
#pragma once

#include "base/time.h"

namespace io {

// The time for intervals, deadlines and records: the wall clock as this process found it, plus the
// time that has passed since. Setting the wall clock does not change it. Time that the machine is
// suspended counts.
//
// A time that another process recorded, or another machine, may be off by any step of the wall
// clock in between: never wait longer because of one than you would without it.
base::Time Now();

// The wall clock as it is set at this moment. Use it only to print a time, or to compare it with
// a time that depends on the same clock, such as the validity of a certificate.
base::Time Wall();

// Now() minus CLOCK_BOOTTIME, constant for the life of the process. A child process that adds it to
// its own CLOCK_BOOTTIME gets the parent's Now().
base::Duration ClockOffset();

}  // namespace io
