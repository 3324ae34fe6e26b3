// A snapshot is read or refused, with the checksum that it has and with one that fits. What was
// read is written and read again as the same, and can be gone on with.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/crc32c.h"
#include "ledger/ledger.h"

namespace {

const ledger::Job kJob{.uid = "u", .name = "n"};

void Read(std::string_view bytes) {
  uint64_t offset = 0;
  auto read = ledger::Ledger::FromSnapshot(kJob, bytes, &offset);
  if (!read) return;
  const std::string written = read->Snapshot(offset);
  const auto again = ledger::Ledger::FromSnapshot(kJob, written, &offset);
  CHECK(again && again->Snapshot(offset) == written);

  const base::Time now{base::Duration(1'800'000'000'000'000)};
  ledger::Batch batch;
  read->Join("newcomer", 1, now, batch);
  for (const ledger::SetView& set : read->Sets()) {
    CHECK(!read->Checkpoint(set.params.name).empty());
    for (const auto& lease : read->Take(set.params.name, "newcomer", 2, now, batch)) {
      (void)read->Report(lease.id, "", now, batch);
    }
  }
  for (const ledger::MemberView& member : read->Members()) {
    (void)read->Leave(member.name, true, now, batch);
  }
  (void)read->Expire(now, batch);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Read(bytes);
  if (bytes.size() < 4) return 0;
  bytes.resize(bytes.size() - 4);
  const uint32_t sum = base::Masked(base::Crc32c(bytes));
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(sum >> shift));
  Read(bytes);
  return 0;
}
