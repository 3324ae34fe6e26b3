// Which Python a command line means, and the TensorFlow in it.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/args.h"

namespace cli {

// --python, else the active virtual environment, else python3: absolute.
base::Result<std::string> ChoosePython(const Args& args);

// What a short Python program prints, trimmed; empty when it fails.
std::string AskPython(const std::string& python, const std::string& code);

struct FoundTensorFlow {
  std::string directory;  // of the package
  std::string version;    // "2.15.1"; empty: of no known distribution
};

// Asks the Python where the module is, without importing it (an import takes seconds).
base::Result<FoundTensorFlow> FindTensorFlow(const std::string& python);

// Which part of TensorFlow's C library is not in this directory; empty: all of it is there.
std::string MissingLibrary(const std::string& directory);

// As FindTensorFlow, for its C library: refused if there is none, or if it is too old to be served by.
base::Result<FoundTensorFlow> FindTensorFlowLibrary(const std::string& python);

}  // namespace cli
