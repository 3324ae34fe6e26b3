// The versions of a model on disk: directories with a number for a name, below its base path. A
// base path that is a SavedModel itself is its only version, numbered as its directory is, else 1.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "serve/snapshot.h"

namespace serve {

std::map<int64_t, std::string> VersionsBelow(const std::string& base_path);

// Whether the files that a SavedModel must have are all there, as far as their names tell: why not,
// or nothing.
std::string MissingOf(const Seen& files);

}  // namespace serve
