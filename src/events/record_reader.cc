#include "events/record_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "base/crc32c.h"

namespace events {
namespace {

constexpr size_t kBufferBytes = 1 << 18;  // stays in the L2 cache; 1 MiB measured slower
constexpr size_t kHeadBytes = 12;         // length and its checksum
constexpr size_t kTailBytes = 4;          // checksum of the data

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

void RecordReader::Start(int fd, uint64_t offset, uint64_t size) {
  fd_ = fd;
  size_ = size;
  buffer_offset_ = offset;
  begin_ = end_ = 0;
  record_ = {};
  error_number_ = 0;
}

void RecordReader::Shrink() {
  if (capacity_ <= kBufferBytes) return;
  Start(-1, offset(), 0);
  buffer_.reset();
  capacity_ = 0;
}

RecordReader::Found RecordReader::Next() {
  record_ = {};
  if (const Found found = Need(kHeadBytes); found != Found::kRecord) return found;
  const char* head = buffer_.get() + begin_;
  const auto length = Load<uint64_t>(head);
  if (base::Masked(base::Crc32c({head, sizeof length})) != Load<uint32_t>(head + sizeof length)) {
    return Found::kBadLength;
  }
  if (length > kMaxRecordBytes) return StepOver(length);

  const size_t total = kHeadBytes + static_cast<size_t>(length) + kTailBytes;
  if (const Found found = Need(total); found != Found::kRecord) return found;
  const char* data = buffer_.get() + begin_ + kHeadBytes;
  begin_ += total;
  const std::string_view record(data, static_cast<size_t>(length));
  if (base::Masked(base::Crc32c(record)) != Load<uint32_t>(data + length)) return Found::kBadData;
  record_ = record;
  return Found::kRecord;
}

RecordReader::Found RecordReader::StepOver(uint64_t length) {
  if (length > UINT64_MAX / 2) return Found::kBadLength;  // no file has it, ever
  const uint64_t next = offset() + kHeadBytes + length + kTailBytes;
  if (next > size_) return Found::kNoMore;
  buffer_offset_ = next;
  begin_ = end_ = 0;
  return Found::kTooLarge;
}

RecordReader::Found RecordReader::Fill(size_t count) {
  // A record the file does not have yet is not worth reading in part.
  if (offset() > size_ || size_ - offset() < count) return Found::kNoMore;

  if (capacity_ < count) {
    const size_t capacity = std::max(kBufferBytes, count);
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (end_ > begin_) std::memcpy(larger.get(), buffer_.get() + begin_, end_ - begin_);
    buffer_ = std::move(larger);
    capacity_ = capacity;
  } else if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  }
  buffer_offset_ += begin_;
  end_ -= begin_;
  begin_ = 0;

  while (end_ < count) {
    const uint64_t left = size_ - (buffer_offset_ + end_);
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(capacity_ - end_, left));
    const ssize_t got =
        pread(fd_, buffer_.get() + end_, wanted, static_cast<off_t>(buffer_offset_ + end_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      error_number_ = errno;
      return Found::kFailed;
    }
    if (got == 0) return Found::kNoMore;  // truncated since its size was taken
    end_ += static_cast<size_t>(got);
  }
  return Found::kRecord;
}

}  // namespace events
