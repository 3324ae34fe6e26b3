// Environment files: lines KEY=VALUE, as `docker run --env-file` takes them.
//
// A line is split at its first '='. The value is everything after it as it stands, with spaces,
// quotes and further '=': nothing is unquoted or expanded. Blank lines and lines that begin with #
// are skipped, a line may end with CR LF, and of two lines with one key the later wins.
//
// Values are often secrets, and so may be what stands where a key should: errors name lines only.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace base {

inline constexpr size_t kMaxEnvFile = size_t{1} << 20;

// Keys are [A-Za-z_][A-Za-z0-9_]*. The error tells of every wrong line: "line 3: no '='; line 7:
// ...".
Result<std::map<std::string, std::string>> ParseEnvFile(std::string_view text);

}  // namespace base
