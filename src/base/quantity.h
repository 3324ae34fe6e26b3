// Kubernetes quantities: "1Gi", "512M", "500m", "1.5", "1e3".
//
// A decimal number with an optional sign and one suffix: Ki Mi Gi Ti Pi Ei (powers of 1024),
// n u m k M G T P E (powers of 1000), or an exponent. What does not fit 64 bits is an error, where
// Kubernetes silently takes the largest number. Negative quantities are errors: every resource
// refuses them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace base {

// Whole units (bytes, mostly), a fraction rounded up.
Result<int64_t> ParseQuantity(std::string_view text);

// Thousandths, rounded up: "1.5" CPUs are 1500.
Result<int64_t> ParseMilliQuantity(std::string_view text);

// What people type for an amount of memory: a quantity in any letter case, with or without a final
// B. "2g", "2GB" and "2G" are 2,000,000,000; "512mib" and "512Mi" are 536,870,912; "768m" is 768
// million, since nobody asks for thousandths of a byte.
Result<int64_t> ParseMemory(std::string_view text);

// For people, to at most three digits and a unit that is a power of 1024: "512Mi", "1.5Gi", "17".
std::string FormatBytes(int64_t bytes);

}  // namespace base
