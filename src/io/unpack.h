// Lays the files of a tar archive out below a directory, and nowhere else.
//
// The archive may come from anybody: names that are absolute or lead upwards, links and devices are
// errors, and every step is taken from the directory's own descriptor without
// following a link, so that nothing outside can be reached.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/tar.h"
#include "io/files.h"

namespace io {

class Unpack : public base::TarReader::Sink {
 public:
  // `directory` is there and empty.
  static base::Result<Unpack> Into(const std::string& directory);

  base::Result<> Begin(const base::TarEntry& entry) override;
  base::Result<> Data(std::string_view bytes) override;
  base::Result<> End() override;

  int64_t files() const { return files_; }
  int64_t bytes() const { return bytes_; }

 private:
  explicit Unpack(Fd root) : root_(std::move(root)) {}

  // The directory that `path` lies in, made if it is not there; `leaf` gets its last part.
  base::Result<Fd> Parent(const std::string& path, std::string& leaf) const;

  Fd root_;
  Fd file_;
  std::string path_;  // of the file that is being written
  int64_t files_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace io
