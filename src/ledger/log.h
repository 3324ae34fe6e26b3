// The log of a ledger: a header that names the job, then frames, each with the entries of one
// write and a checksum.
//
//   header: "TYLEDGR1", a frame with the kHeader entry
//   frame:  length (4 bytes, little end first), CRC-32C of length and payload (4 bytes), payload
//
// One frame is what is written and synced at once, so after a crash only the last one can be in
// part on the disk, whatever the order in which its pages got there: a bad frame with nothing good
// behind it is a torn tail, and nobody was answered on its account. A bad frame with a good one
// behind it was damaged later, and that is an error: what it held may have been promised.
//
// Texts in entries have no control characters, so no text can be taken for a frame.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ledger/entry.h"

namespace ledger {

struct Job {
  std::string uid, name;

  bool operator==(const Job&) const = default;
};

// The entries of one write to be. Fill it by the functions of Ledger; write Framed(batch) at the
// end of the log, sync, answer; then begin a new one.
struct Batch {
  std::string entries;

  bool empty() const { return entries.empty(); }
};

inline constexpr size_t kMostFrame = (size_t{1} << 28) - 1;

// The bytes of the frame; nothing for an empty batch.
std::string Framed(const Batch& batch);

// What a new log begins with.
std::string LogHeader(const Job& job);

// The frames of a log, from one that begins at the start of `log` on.
class FrameReader {
 public:
  explicit FrameReader(std::string_view log) : log_(log) {}

  // The payload of the next good frame; false at the end, at a torn tail and at damage.
  bool Next(std::string_view* payload);

  // Bytes of all good frames so far.
  size_t good() const { return good_; }

  // After Next said false: whether there is a good frame somewhere behind the bad one.
  bool Damaged() const;

 private:
  std::string_view log_;
  size_t good_ = 0;
};

// Gives each entry of the frames to `apply`, whose error ends it. `log` begins at this offset of
// the whole, which errors name. Returns how many bytes are whole frames; damage is an error.
base::Result<size_t> ForEachEntry(std::string_view log, uint64_t offset,
                                  const std::function<base::Result<>(const Entry&)>& apply);

// The length of the header of `log`, which must be of this job; 0 when there is none yet, because
// the log is empty or its very first write was torn.
base::Result<size_t> CheckHeader(const Job& job, std::string_view log);

}  // namespace ledger
