// A directory of a test's own, removed with all that is in it.
#pragma once

#include <cstdlib>
#include <string>

#include "base/result.h"
#include "io/files.h"

namespace io::testing {

class TempDir {
 public:
  TempDir() { CHECK(mkdtemp(path_.data())); }
  ~TempDir() { base::IgnoreError(RemoveTree(path_), "only a test's leftovers"); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // Writes a file; its path.
  std::string Write(const std::string& name, std::string_view content, int mode = 0644) const {
    const std::string file = path_ + "/" + name;
    CHECK(MakeDirs(DirName(file)) && WriteFile(file, content, mode));
    return file;
  }

 private:
  std::string path_ = "/tmp/trainyard-test-XXXXXX";
};

}  // namespace io::testing
