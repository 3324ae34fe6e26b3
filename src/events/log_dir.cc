#include "events/log_dir.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace events {
namespace {

using Found = RecordReader::Found;

bool operator==(const struct timespec& a, const struct timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

const Series* LogDirReader::Find(std::string_view run, std::string_view tag) const {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return nullptr;
  const auto series = found->second.find(tag);
  return series == found->second.end() ? nullptr : &series->second;
}

LogDirReader::Polled LogDirReader::Poll(base::Time now, uint64_t max_bytes) {
  Polled polled;
  const int64_t scalars_before = counts_.scalars;
  uint64_t budget = max_bytes;
  for (const EventFile* file : tree_.Scan(now, &problems_)) Follow(*file, &budget, &polled);
  reader_.Shrink();
  polled.scalars = counts_.scalars - scalars_before;
  return polled;
}

// Files of a run come in the order in which they were begun. One that turns up later than its name
// says (copied, say) is older than all that was read and never overtakes.
int LogDirReader::NumberOf(const EventFile& file) {
  Order& order = orders_[file.run];
  if (!order.newest.empty() && BegunBefore(file.path, order.newest)) return 0;
  order.newest = file.path;
  return ++order.last_number;
}

void LogDirReader::Follow(const EventFile& file, uint64_t* budget, Polled* polled) {
  struct stat status;
  if (stat(file.path.c_str(), &status) != 0) return;  // gone since it was listed
  auto [entry, is_new] = cursors_.try_emplace(file.path);
  Cursor& cursor = entry->second;
  if (is_new) {
    cursor = {.device = status.st_dev, .inode = status.st_ino, .number = NumberOf(file)};
    ++counts_.files;
  }
  const bool same = cursor.device == status.st_dev && cursor.inode == status.st_ino;
  if (same && cursor.seen_size == static_cast<uint64_t>(status.st_size) &&
      cursor.seen_modified == status.st_mtim) {
    return;
  }
  if (*budget == 0) {
    polled->more = true;
    return;
  }

  // Not blocking, should a FIFO have taken the file's place.
  const Descriptor fd(open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0 || fstat(fd.get(), &status) != 0) {
    if (errno == ENOENT) return;
    ++counts_.failed_reads;
    problems_.Report(file.path + ": " + std::strerror(errno));
    return;
  }
  if (!S_ISREG(status.st_mode)) return;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (cursor.device != status.st_dev || cursor.inode != status.st_ino || size < cursor.offset) {
    cursor = {
        .device = status.st_dev, .inode = status.st_ino, .number = ++orders_[file.run].last_number};
    ++counts_.replaced_files;
  }
  switch (ReadOn(file, fd.get(), size, &cursor, budget)) {
    case Found::kRecord:
    case Found::kBadData:
    case Found::kTooLarge:
      polled->more = true;
      return;
    case Found::kFailed:
      return;  // to be tried again
    case Found::kNoMore:
    case Found::kBadLength:
      cursor.seen_size = size;
      cursor.seen_modified = status.st_mtim;
  }
}

RecordReader::Found LogDirReader::ReadOn(const EventFile& file, int fd, uint64_t size,
                                         Cursor* cursor, uint64_t* budget) {
  Run& run = runs_[file.run];
  const uint64_t begin = cursor->offset;
  const uint64_t stop = *budget < UINT64_MAX - begin ? begin + *budget : UINT64_MAX;
  recent_.fill({});
  reader_.Start(fd, begin, size);
  Found found = Found::kRecord;
  while (reader_.offset() < stop) {
    found = reader_.Next();
    if (found == Found::kRecord) {
      ++counts_.records;
      Take(reader_.record(), cursor->number, &run);
    } else if (found == Found::kBadData) {
      ++counts_.corrupt_records;
      problems_.Report(file.path + ": a record with a wrong checksum was skipped");
    } else if (found == Found::kTooLarge) {
      ++counts_.oversized_records;
    } else {
      break;
    }
  }
  cursor->offset = reader_.offset();
  const uint64_t taken = cursor->offset - begin;
  counts_.bytes += static_cast<int64_t>(taken);
  *budget -= std::min(*budget, taken);

  if (found == Found::kBadLength && cursor->bad_offset != cursor->offset) {
    cursor->bad_offset = cursor->offset;
    ++counts_.corrupt_records;
    problems_.Report(file.path + ": not readable beyond byte " + std::to_string(cursor->offset) +
                     ": the length of a record does not fit its checksum");
  }
  if (found == Found::kFailed) {
    ++counts_.failed_reads;
    problems_.Report(file.path + ": " + std::strerror(reader_.error_number()));
  }
  return found;
}

void LogDirReader::Take(std::string_view record, int number, Run* run) {
  if (!DecodeEvent(record, &event_)) {
    ++counts_.malformed_events;
    return;
  }
  if (event_.session_start) {
    for (auto& [tag, series] : *run) series.Restart(number, event_.step);
  }
  for (const Scalar& scalar : event_.scalars) {
    Series* series = SeriesOf(scalar.tag, run);
    if (!series) {
      ++counts_.dropped_scalars;
    } else if (series->Add(number, {event_.step, event_.wall_time, scalar.value})) {
      ++counts_.scalars;
    } else {
      ++counts_.superseded_scalars;
    }
  }
}

Series* LogDirReader::SeriesOf(std::string_view tag, Run* run) {
  const auto letter = [&](size_t i) {
    return tag.empty() ? 0u : static_cast<unsigned char>(tag[i]);
  };
  Recent& recent =
      recent_[(tag.size() + letter(0) * 5 + letter(tag.size() - 1) * 17) % recent_.size()];
  if (recent.tag && *recent.tag == tag) return recent.series;
  auto found = run->find(tag);
  if (found == run->end()) {
    if (series_count_ == kMaxSeries || tag.size() > kMaxTagBytes) return nullptr;
    ++series_count_;
    found = run->emplace(tag, Series()).first;
  }
  recent = {&found->first, &found->second};
  return recent.series;
}

}  // namespace events
