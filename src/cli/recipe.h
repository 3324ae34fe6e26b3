// The Dockerfile of an image with somebody's code. Pure.
#pragma once

#include <string>

#include "base/result.h"

namespace cli {

inline constexpr std::string_view kBaseImage = "tensorflow/tensorflow:2.15.0";

struct Recipe {
  std::string base = std::string(kBaseImage);
  std::string script;         // below the directory of the code
  bool requirements = false;  // whether that has a requirements.txt
};

// To be built with the directory of the code as its context. The code lies where `run` would mount
// it; arguments of a container reach the script.
std::string Dockerfile(const Recipe& recipe);

// Refuses what cannot be an image's name. Whether there is such an image, the builder knows.
base::Result<> CheckImageName(const std::string& flag, const std::string& name);

}  // namespace cli
