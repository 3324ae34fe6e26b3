// Durations as people write and read them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace base {

// "90" (seconds), "90s", "10m", "1h30m", "500ms", "1.5h", "2d". Units d, h, m, s, ms, us, each at
// most once and from large to small. Not negative; at most 100 years, so that adding one to a time
// cannot overflow.
Result<Duration> ParseDuration(std::string_view text);

// How long something took: "38s", "2:14", "1:02:03"; fractions of a second are cut off.
std::string FormatDuration(Duration duration);

// One unit only, for tables: "38s", "4m", "2h", "3d".
std::string FormatShortDuration(Duration duration);

}  // namespace base
