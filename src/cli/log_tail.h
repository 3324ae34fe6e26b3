// Reading log files of replicas as they grow, and telling when their lines were written.
//
// A replica writes to its file by itself, so no reader ever holds it up. While a supervisor reads
// along it notes, in a file beside the log (ROLE-N.times), up to which byte the log had grown at
// which time; that is what orders the lines of several replicas later.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/status.h"
#include "backend/local/job_dir.h"
#include "base/time.h"
#include "io/files.h"

namespace cli {

class LogTail {
 public:
  explicit LogTail(std::string path) : path_(std::move(path)) {}

  // Whether ReadNew has something to read.
  bool Grew();
  // What was added since the last time, at most `limit` bytes.
  std::string ReadNew(size_t limit = 1 << 20);
  void SkipTo(int64_t offset) { offset_ = offset; }
  int64_t offset() const { return offset_; }

 private:
  std::string path_;
  io::Fd fd_;
  int64_t offset_ = 0;
};

// Notes that the log had `offset` bytes at `now`.
void NoteTime(const std::string& log_file, int64_t offset, base::Time now);
// The byte from which on the log was written at or after `time`, as far as was noted.
int64_t OffsetAt(const std::string& log_file, base::Time time);

// The byte at which the last `lines` lines of the log begin, 0 if there are no more than that. It
// reads the log from its end, at most kMostTail bytes of it: a line that is longer is cut.
inline constexpr int64_t kMostTail = int64_t{64} << 20;
int64_t OffsetOfLastLines(const std::string& log_file, int64_t lines);

struct TimedChunk {
  api::ReplicaId id;
  base::Time time;    // when it was seen; the epoch if nobody noted it
  int64_t begin = 0;  // where it stands in the file
  std::string bytes;
};

// All that is new in these files, cut at the noted times and in their order.
std::vector<TimedChunk> ReadInOrder(std::map<api::ReplicaId, LogTail>& tails,
                                    const backend::local::JobDir& dir);

}  // namespace cli
