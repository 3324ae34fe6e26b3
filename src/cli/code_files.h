// What a directory of code holds: the files that belong to it, and the script to begin with.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cli {

// The files of a directory, by their paths below it, sorted; without what is hidden or made by
// Python itself. A link that leads out of the directory, or nowhere, is refused.
base::Result<std::vector<std::string>> CodeFiles(const std::string& directory);

// Which script of a directory is meant, as a path.
base::Result<std::string> ScriptIn(const std::string& directory);

}  // namespace cli
