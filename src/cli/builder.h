// docker, podman or buildah: whichever builds images on this machine.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cli {

class Builder {
 public:
  // The first that is on PATH and works; a docker without its engine does not. The error names what
  // is wrong with each that is there, and what to install.
  static base::Result<Builder> Find();

  const std::string& path() const { return path_; }

  // Its command lines.
  std::vector<std::string> Build(const std::string& image, const std::string& dockerfile,
                                 const std::string& context) const;
  std::vector<std::string> Push(const std::string& image) const;

 private:
  explicit Builder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Runs one of these command lines in the user's sight. kUnavailable: it failed.
base::Result<> RunBuilder(const std::vector<std::string>& words);
// Says why there is no image; the exit status.
int NotBuilt(const base::Error& error);

}  // namespace cli
