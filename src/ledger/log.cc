#include "ledger/log.h"

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/strings.h"

namespace ledger {
namespace {

constexpr std::string_view kMagic = "TYLEDGR1";
constexpr size_t kMagicFamily = 7;  // of the magic: what all versions have
constexpr size_t kHead = 8;

void PutFixed(std::string& out, uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(number >> shift));
}

uint32_t Fixed(std::string_view bytes) {
  uint32_t number = 0;
  for (size_t i = 4; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

// The payload of the frame at the start of bytes, empty if there is no good one.
std::string_view FrameAt(std::string_view bytes) {
  if (bytes.size() < kHead) return {};
  const uint32_t length = Fixed(bytes);
  if (length == 0 || length > kMostFrame || length > bytes.size() - kHead) return {};
  const std::string_view payload = bytes.substr(kHead, length);
  const uint32_t sum = base::ExtendCrc32c(base::Crc32c(bytes.substr(0, 4)), payload);
  return base::Masked(sum) == Fixed(bytes.substr(4)) ? payload : std::string_view();
}

}  // namespace

std::string Framed(const Batch& batch) {
  std::string frame;
  if (batch.empty()) return frame;
  CHECK(batch.entries.size() <= kMostFrame);
  frame.reserve(kHead + batch.entries.size());
  PutFixed(frame, static_cast<uint32_t>(batch.entries.size()));
  PutFixed(frame, base::Masked(base::ExtendCrc32c(base::Crc32c(frame), batch.entries)));
  return frame += batch.entries;
}

std::string LogHeader(const Job& job) {
  Batch batch;
  PutEntry(batch.entries, {.kind = EntryKind::kHeader, .uid = job.uid, .name = job.name});
  return std::string(kMagic) + Framed(batch);
}

bool FrameReader::Next(std::string_view* payload) {
  *payload = FrameAt(log_.substr(good_));
  if (payload->empty()) return false;
  good_ += kHead + payload->size();
  return true;
}

bool FrameReader::Damaged() const {
  for (size_t at = good_ + 1; at + kHead < log_.size(); ++at) {
    if (!FrameAt(log_.substr(at)).empty()) return true;
  }
  return false;
}

base::Result<size_t> ForEachEntry(std::string_view log, uint64_t offset,
                                  const std::function<base::Result<>(const Entry&)>& apply) {
  FrameReader frames(log);
  std::string_view payload;
  for (size_t at = 0; frames.Next(&payload); at = frames.good()) {
    const auto where = [&] { return fmt::format("the ledger at byte {}", offset + at); };
    ByteReader reader(payload);
    while (!reader.AtEnd()) {
      const Entry entry = ReadEntry(reader);
      if (!reader.ok()) return base::Invalid(where() + " has an entry that cannot be read");
      if (auto applied = apply(entry); !applied) {
        return std::unexpected(std::move(applied).error().Context(where()));
      }
    }
  }
  if (frames.Damaged()) {
    return base::Invalid(fmt::format("the ledger is damaged at byte {}, and goes on behind it",
                                     offset + frames.good()));
  }
  return frames.good();
}

base::Result<size_t> CheckHeader(const Job& job, std::string_view log) {
  // A file that got its length but not its bytes before the power went.
  if (log.find_first_not_of('\0') == std::string_view::npos) return 0;
  if (log.size() < kMagic.size() && kMagic.starts_with(log)) return 0;
  if (!log.starts_with(kMagic)) {
    if (log.size() >= kMagic.size() && log.starts_with(kMagic.substr(0, kMagicFamily))) {
      return base::Invalid("the ledger has another format than this version of trainyard writes");
    }
    return base::Invalid("this is no ledger: it does not begin as one");
  }
  FrameReader frames(log.substr(kMagic.size()));
  std::string_view payload;
  if (!frames.Next(&payload)) {
    if (frames.Damaged()) {
      return base::Invalid(fmt::format("the ledger is damaged at byte {}", kMagic.size()));
    }
    return 0;
  }
  ByteReader reader(payload);
  const Entry entry = ReadEntry(reader);
  if (!reader.ok() || !reader.AtEnd() || entry.kind != EntryKind::kHeader) {
    return base::Invalid("the ledger does not begin with the name of its job");
  }
  if (entry.uid != job.uid || entry.name != job.name) {
    return base::Invalid(fmt::format("this is the ledger of job {} ({}), not of {} ({})",
                                     base::OneLine(entry.name), base::OneLine(entry.uid),
                                     base::OneLine(job.name), base::OneLine(job.uid)));
  }
  return kMagic.size() + frames.good();
}

}  // namespace ledger
