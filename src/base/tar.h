// Reads a tar archive as it arrives, piece by piece.
//
// Understands ustar with GNU's long names, which is what Python's tarfile writes as GNU_FORMAT.
// Input is hostile: nothing is kept but one header and one name, and what is out of place is an
// error that ends the reading.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace base {

struct TarEntry {
  enum class Kind { kFile, kDirectory, kOther };
  Kind kind = Kind::kFile;
  std::string path;  // as written: may be absolute, or lead upwards
  int mode = 0644;   // the permission bits
  int64_t size = 0;
};

class TarReader {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual Result<> Begin(const TarEntry& entry) = 0;
    virtual Result<> Data(std::string_view bytes) = 0;  // of the entry that was begun last
    virtual Result<> End() = 0;
  };

  explicit TarReader(Sink& sink) : sink_(sink) {}

  // After an error nothing more may be fed.
  Result<> Feed(std::string_view bytes);
  // The archive is complete: its end was seen.
  bool complete() const { return zero_blocks_ >= 2; }

 private:
  static constexpr size_t kBlock = 512;
  enum class State { kHeader, kData, kName, kPadding };

  Result<> ReadHeader();
  Result<> FinishData();

  Sink& sink_;
  State state_ = State::kHeader;
  std::string block_;      // of a header, as far as it has come
  std::string long_name_;  // of the next entry
  int64_t left_ = 0;       // of the data
  int64_t padding_ = 0;    // to the end of the block
  int zero_blocks_ = 0;
};

}  // namespace base
