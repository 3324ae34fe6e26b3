// A body that a client has packed with gzip, unpacked. Pure.
#pragma once

#include <string>
#include <string_view>

#include "serve/status.h"

namespace serve {

// Refused if it is not gzip, not all of it, or unpacks to more than `most` bytes: some kilobytes can
// stand for gigabytes.
Answer<std::string> Gunzip(std::string_view packed, size_t most);

}  // namespace serve
