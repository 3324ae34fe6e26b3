// The records of a TFRecord file, one pass at a time, while somebody else still writes it.
//
// A record is: length (8 bytes), masked CRC-32C of the length, the data, masked CRC-32C of the
// data. There is no marker to find the next record by, which decides what can be survived:
//
//   the file ends within a record   the writer is not done: kNoMore, and the next pass begins there
//   the data does not fit its CRC   only this record is lost: kBadData, the next one follows
//   the length does not fit its CRC nothing beyond can be found: kBadLength
//
// A reader is a buffer (256 KiB, more only while a record needs it) and serves many files in turn:
//
//   reader.Start(fd, offset, size);
//   while (reader.Next() == RecordReader::Found::kRecord) Use(reader.record());
//   offset = reader.offset();  // where the next pass begins
//
// It allocates nothing for a record. It owns no descriptor. Files are read with pread and not
// mapped: a mapped file that is truncated kills its reader, and mapping would save less than a
// tenth of what reading and decoding take (bench/events_bench scan, map, read).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace events {

class RecordReader {
 public:
  // No scalar lives in a record beyond this. Such a record is stepped over without being read, once
  // the file really has it.
  static constexpr uint64_t kMaxRecordBytes = 64 << 20;

  enum class Found {
    kRecord,
    kNoMore,     // up to `size` there is no further whole record
    kBadData,    // a record was stepped over: its data does not fit its checksum
    kTooLarge,   // a record was stepped over: more than kMaxRecordBytes
    kBadLength,  // the file cannot be read beyond offset()
    kFailed,     // reading failed: error_number()
  };

  // Reads what lies from offset, the beginning of a record, to size.
  void Start(int fd, uint64_t offset, uint64_t size);
  Found Next();

  // The data of the record just found; valid until Next or Start.
  std::string_view record() const { return record_; }
  // Where the record after the one just found begins; after kNoMore, kBadLength and kFailed, where
  // to begin the next time.
  uint64_t offset() const { return buffer_offset_ + static_cast<uint64_t>(begin_); }
  int error_number() const { return error_number_; }

  // Gives back what a large record made the buffer grow to.
  void Shrink();

 private:
  // Makes `count` bytes from offset() on lie in the buffer, or says why not.
  Found Need(size_t count) { return end_ - begin_ >= count ? Found::kRecord : Fill(count); }
  Found Fill(size_t count);
  Found StepOver(uint64_t total);

  int fd_ = -1;
  uint64_t size_ = 0;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  uint64_t buffer_offset_ = 0;  // of buffer_[0] in the file
  size_t begin_ = 0;            // of what is not consumed yet
  size_t end_ = 0;              // of what was read
  std::string_view record_;
  int error_number_ = 0;
};

}  // namespace events
