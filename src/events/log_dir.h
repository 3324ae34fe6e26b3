// Follows the event files of a log directory and keeps a series for each scalar.
//
//   LogDirReader reader("logs");
//   reader.Poll(now);               // again whenever news are wanted; cheap when there are none
//   for (const auto& [name, run] : reader.runs()) ... run.Find("epoch_loss")->latest() ...
//
// Poll reads what was written since the last time: no thread, no descriptor held, no watch.
// Whatever the files hold, it goes on with what can be read, counts the rest, and names each
// problem once.
//
//   truncated or replaced    read again from the beginning, as a later file of its run
//   bad data checksum        that record is skipped
//   bad length checksum      the file is read no further, unless it changes and then fits (a
//   network
//                            file system may show the tail of a growing file as zeros for a while)
//   no right to read         tried again at the next Poll
//
// What one reader keeps is bounded: kMaxSeries series of Series::kMaxPoints points. Series of files
// that were deleted stay. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/time.h"
#include "events/event.h"
#include "events/log_tree.h"
#include "events/problems.h"
#include "events/record_reader.h"
#include "events/series.h"

namespace events {

using Run = std::map<std::string, Series, std::less<>>;  // by tag

struct ReadCounts {
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t records = 0;             // whole and right
  int64_t scalars = 0;             // added to a series
  int64_t corrupt_records = 0;     // skipped, or what stopped a file
  int64_t oversized_records = 0;   // skipped
  int64_t malformed_events = 0;    // right by checksum and still no Event
  int64_t superseded_scalars = 0;  // of a file that a later one of the run overtook
  int64_t dropped_scalars = 0;     // beyond kMaxSeries or kMaxTagBytes
  int64_t replaced_files = 0;      // truncated or exchanged while followed
  int64_t failed_reads = 0;

  bool operator==(const ReadCounts&) const = default;
};

class LogDirReader {
 public:
  static constexpr size_t kMaxSeries = 20'000;
  static constexpr size_t kMaxTagBytes = 1024;

  explicit LogDirReader(std::string root) : tree_(std::move(root)) {}

  // What one Poll did. `more`: it stopped at max_bytes and there is more to read.
  struct Polled {
    int64_t scalars = 0;
    bool more = false;
  };
  Polled Poll(base::Time now, uint64_t max_bytes = UINT64_MAX);

  const std::map<std::string, Run, std::less<>>& runs() const { return runs_; }
  // Nothing when the run or the tag is not known.
  const Series* Find(std::string_view run, std::string_view tag) const;
  const ReadCounts& counts() const { return counts_; }
  // Problems met since the last time, as "path: what is wrong".
  std::vector<std::string> TakeProblems() { return problems_.Take(); }

 private:
  // How far a file was read.
  struct Cursor {
    dev_t device = 0;
    ino_t inode = 0;
    uint64_t offset = 0;
    int number = 0;          // in its run: Series::Add
    uint64_t seen_size = 0;  // up to where all was read that could be
    struct timespec seen_modified = {};
    uint64_t bad_offset = UINT64_MAX;  // where a bad length was counted
  };
  struct Order {
    std::string newest;  // path
    int last_number = 0;
  };

  // A series found lately, so that a record costs no search.
  struct Recent {
    const std::string* tag = nullptr;
    Series* series = nullptr;
  };

  int NumberOf(const EventFile& file);
  void Follow(const EventFile& file, uint64_t* budget, Polled* polled);
  // Returns what it ended with: a record (or one stepped over) if the budget was spent before.
  RecordReader::Found ReadOn(const EventFile& file, int fd, uint64_t size, Cursor* cursor,
                             uint64_t* budget);
  void Take(std::string_view record, int number, Run* run);
  Series* SeriesOf(std::string_view tag, Run* run);

  LogTree tree_;
  RecordReader reader_;
  Event event_;
  Problems problems_;
  std::map<std::string, Cursor> cursors_;  // by path
  std::map<std::string, Order> orders_;    // by run
  std::map<std::string, Run, std::less<>> runs_;
  std::array<Recent, 64> recent_;  // of the run that is being read
  size_t series_count_ = 0;
  ReadCounts counts_;
};

}  // namespace events
