// The files of a model as they are now, held open: a directory of links to our own descriptors,
// which can be read even when the model's own directory has been deleted or replaced. So a runtime
// that crashed can be started again. What is written into the files themselves is seen, and found
// out by Overwritten.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "io/files.h"

namespace serve {

// What a directory held: name, size, time of change and number of each file below it, sorted. Two
// that are equal mean that nobody writes there. Links are followed, other things are not.
struct FileSeen {
  std::string name;  // below the directory
  int64_t size = 0;
  int64_t changed_ns = 0;
  uint64_t inode = 0;

  auto operator<=>(const FileSeen&) const = default;
};
using Seen = std::vector<FileSeen>;

inline constexpr size_t kMostFiles = 4096;

// Empty when it cannot be read or has more than kMostFiles.
Seen Look(const std::string& directory);

class Snapshot {
 public:
  Snapshot() = default;
  static base::Result<Snapshot> Of(const std::string& directory, const Seen& files);
  Snapshot(Snapshot&&) noexcept = default;
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot();

  // Empty: there are too many files to hold, and the model is read where it lies.
  const std::string& path() const { return path_; }
  // Whether a file that is held is no longer what it was.
  bool Overwritten() const;

 private:
  std::string path_;
  std::vector<io::Fd> files_;
  Seen seen_;  // of these
};

}  // namespace serve
