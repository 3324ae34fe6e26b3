// Points in time and durations, as every folder uses them.
//
// Time is wall time in microseconds since 1970 (UTC): statuses outlive processes and machines.
// Nothing below io reads a clock; the time is an argument. It never steps (io/clock.h).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace base {

using Duration = std::chrono::microseconds;
using Time = std::chrono::time_point<std::chrono::system_clock, Duration>;

// As Kubernetes writes it: "2026-11-15T21:49:57Z". Micro: "2026-11-15T21:49:57.220145Z".
std::string FormatTime(Time time);
std::string FormatTimeMicro(Time time);
// Reads both forms. No other zone than Z, no other calendar than ours.
std::optional<Time> ParseTime(std::string_view text);

}  // namespace base
