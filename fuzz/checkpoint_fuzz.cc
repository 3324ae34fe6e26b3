// The checkpoint of a data set is restored or refused. What was restored gives a checkpoint that
// restores to the same, and its log replays.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ledger/ledger.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ledger::Job job{.uid = "u", .name = "n"};
  ledger::Ledger one(job);
  ledger::Batch batch;
  if (!one.Restore("", text, batch)) {
    CHECK(batch.empty());
    return 0;
  }
  const ledger::SetView set = one.Sets().at(0);
  CHECK(set.records_left >= -1 && set.records_left <= set.records_total);
  const std::string checkpoint = one.Checkpoint(set.params.name);
  ledger::Ledger other(job);
  ledger::Batch again;
  CHECK(other.Restore(set.params.name, checkpoint, again));
  CHECK(other.Checkpoint(set.params.name) == checkpoint);
  size_t good = 0;
  const std::string log = ledger::LogHeader(job) + Framed(batch);
  const auto replayed = ledger::Ledger::Replay(job, log, &good);
  CHECK(replayed && replayed->Checkpoint(set.params.name) == checkpoint);
  return 0;
}
