// The code of a job as it was when the job was started: its script, and the Python files beside the
// script and in folders below.
//
// A job runs its script in place as long as none of these files has changed, and from the copy
// afterwards, so that an edit never changes a job that is restarted or resumed. In the copy, what
// is not Python is a link to the original: a script that looks for data beside itself finds it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace backend::local {

// Replaces what `copy` has of an earlier call. False: there are too many files beside the script,
// and only those of its own folder, or only the script itself, are kept. `without` is a directory
// to leave out, as is what is hidden, a virtual environment, or made by Python itself.
base::Result<bool> KeepCode(const std::string& script, std::string_view script_text,
                            const std::string& copy, const std::string& without);

// Returns the files that have changed since, by their paths below the script's folder, sorted.
std::vector<std::string> ChangedCode(const std::string& script, const std::string& copy);

// Returns the path of the script to run: itself while nothing has changed, else the copy, which is
// completed with links.
base::Result<std::string> ScriptToRun(const std::string& script, const std::string& copy);

}  // namespace backend::local
