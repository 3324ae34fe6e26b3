// The Dockerfile of an image with somebody's code. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

// The image of a model zoo, as `elasticdl zoo init` makes it. Paths are below the directory that is
// built from.
struct ZooRecipe {
  std::string base;
  bool python = true;               // whether the base has one to install packages with
  std::string index;                // where pip looks as well
  std::vector<std::string> wheels;  // to install instead of the client of the index
  std::string model_zoo = ".";
  bool requirements = false;  // whether that has a requirements.txt
  std::string cluster_spec;   // a file
};
std::string ZooDockerfile(const ZooRecipe& recipe);
inline constexpr std::string_view kZooMark =
    "# Written by elasticdl zoo init.\n";  // its first line

// Refuses what cannot be an image's name. Whether there is such an image, the builder knows.
base::Result<> CheckImageName(const std::string& flag, const std::string& name);

}  // namespace cli
