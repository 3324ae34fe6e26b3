// A log is replayed or refused. The bytes are tried as a whole log, and as the entries of one good
// frame, so that what is behind the checksum is reached too. What was replayed is the same from its
// snapshot, adds up in the audit, and can be gone on with.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ledger/audit.h"
#include "ledger/ledger.h"

namespace {

const ledger::Job kJob{.uid = "u", .name = "n"};

void Replay(std::string_view log) {
  size_t good = 0;
  auto replayed = ledger::Ledger::Replay(kJob, log, &good);
  const auto audit = ledger::AuditLog(kJob, log);
  CHECK(audit.has_value() == replayed.has_value());
  if (!replayed) return;
  CHECK(good <= log.size() && audit->good == good);
  const std::string snapshot = replayed->Snapshot(good);
  uint64_t offset = 0;
  const auto quick = ledger::Ledger::FromSnapshot(kJob, snapshot, &offset);
  CHECK(quick && offset == good && quick->Snapshot(good) == snapshot);

  const base::Time now{base::Duration(1'800'000'000'000'000)};
  ledger::Batch batch;
  replayed->Join("newcomer", 1, now, batch);
  for (const ledger::SetView& set : replayed->Sets()) {
    CHECK(set.todo >= 0 && set.doing >= 0 && set.done >= 0);
    CHECK(!replayed->Checkpoint(set.params.name).empty());
    for (const auto& lease : replayed->Take(set.params.name, "newcomer", 2, now, batch)) {
      CHECK(lease.id > 0 && lease.start < lease.end && lease.end <= set.params.size);
      (void)replayed->Report(lease.id, "", now, batch);
    }
  }
  (void)replayed->Expire(now, batch);
  (void)replayed->NextExpiry();
  (void)replayed->Members();
  (void)replayed->Misled();
  const std::string longer =
      (good == 0 ? ledger::LogHeader(kJob) : std::string(log.substr(0, good))) + Framed(batch);
  const auto again = ledger::Ledger::Replay(kJob, longer, &good);
  CHECK(again && good == longer.size() && again->Snapshot(0) == replayed->Snapshot(0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Replay(bytes);
  Replay(ledger::LogHeader(kJob) + ledger::Framed({.entries = std::string(bytes)}));
  ledger::ByteReader reader(bytes);
  const ledger::Entry entry = ledger::ReadEntry(reader);
  if (!reader.ok()) return 0;
  std::string written;
  ledger::PutEntry(written, entry);
  CHECK(written == bytes.substr(0, bytes.size() - reader.rest().size()));
  return 0;
}
