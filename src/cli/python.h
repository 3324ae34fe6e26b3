// The Python that a command means.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/args.h"

namespace cli {

// --python, else the active virtual environment's, else python3 on PATH; absolute.
base::Result<std::string> ChoosePython(const Args& args);

// What a short Python program prints, trimmed; empty when it fails.
std::string AskPython(const std::string& python, const std::string& code);

}  // namespace cli
