#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "ledger/ledger.h"
#include "ledger/testing.h"

namespace ledger {
namespace {

using testing::Desk;
using testing::kJob;

Desk SomeDesk() {
  Desk desk;
  desk.Register({.name = "iris", .size = 150, .shard_size = 10, .epochs = 2});
  for (const std::string name : {"a", "b", "c"}) desk.Join(name);
  for (int i = 0; i < 3; ++i) desk.Report(desk.TakeOne("a").id, "bad");
  desk.Report(desk.TakeOne("a").id);
  desk.Take("b", 4);
  desk.Leave("b", false);
  desk.Take("c", 2);
  desk.TellEnd("c");
  desk.Cut("a");
  return desk;
}

TEST(Snapshot, IsTheWholeState) {
  Desk desk = SomeDesk();
  uint64_t offset = 0;
  auto ledger = Ledger::FromSnapshot(kJob, desk.ledger.Snapshot(4711), &offset);
  ASSERT_TRUE(ledger) << ledger.error().text();
  EXPECT_EQ(offset, 4711u);
  EXPECT_EQ(ledger->Snapshot(4711), desk.ledger.Snapshot(4711));
  EXPECT_EQ(ledger->Misled(), desk.ledger.Misled());
  EXPECT_EQ(ledger->Look("iris", "c"), desk.Look("c"));
  EXPECT_EQ(ledger->Held(), desk.ledger.Held());
  // And it goes on alike.
  Batch one, other;
  EXPECT_EQ(ledger->Take("iris", "a", 9, desk.now, one),
            desk.ledger.Take("iris", "a", 9, desk.now, other));
  EXPECT_EQ(one.entries, other.entries);
}

TEST(Snapshot, WithAFlippedBitOrCutAnywhereIsRefused) {
  const std::string snapshot = SomeDesk().ledger.Snapshot(7);
  uint64_t offset = 0;
  for (size_t at = 0; at < snapshot.size(); ++at) {
    EXPECT_FALSE(Ledger::FromSnapshot(kJob, snapshot.substr(0, at), &offset)) << at;
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = snapshot;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      EXPECT_FALSE(Ledger::FromSnapshot(kJob, flipped, &offset)) << at;
    }
  }
}

TEST(Snapshot, OfAnotherJobIsRefused) {
  const std::string snapshot = SomeDesk().ledger.Snapshot(7);
  uint64_t offset = 0;
  const auto ledger = Ledger::FromSnapshot({.uid = "u-2", .name = "mnist"}, snapshot, &offset);
  ASSERT_FALSE(ledger);
  EXPECT_EQ(ledger.error().text(), "the snapshot is of the ledger of another job");
}

// After INT32_MAX comes 1, but none that is still out. A snapshot is the only way to get there
// in a test: the bytes of the next id are put in place, and the checksum with them.
TEST(Snapshot, LeaseIdsWrapWithoutMeetingOneThatIsOut) {
  Desk desk;
  desk.Register({.name = "iris", .size = 150, .shard_size = 1});
  desk.Join("a");
  desk.Join("b");
  const auto held = desk.Take("a", 2);
  const Lease lost = desk.TakeOne("b");
  desk.Leave("b", false);
  ASSERT_EQ(held[0].id, 1);
  ASSERT_EQ(lost.id, 3);
  std::string snapshot = desk.ledger.Snapshot(0);
  const size_t at = 8 + 1 + kJob.uid.size() + 1 + kJob.name.size() + 1;
  ASSERT_EQ(snapshot[at], 4);
  std::string next;
  PutNumber(next, INT32_MAX - 1);
  snapshot.replace(at, 1, next);
  snapshot.resize(snapshot.size() - 4);
  const uint32_t sum = base::Masked(base::Crc32c(snapshot));
  for (int shift = 0; shift < 32; shift += 8) snapshot.push_back(static_cast<char>(sum >> shift));
  uint64_t offset = 0;
  Ledger ledger = Ledger::FromSnapshot(kJob, snapshot, &offset).value();
  Batch batch;
  std::vector<int32_t> ids;
  for (const Lease& lease : ledger.Take("iris", "a", 4, desk.now, batch)) ids.push_back(lease.id);
  EXPECT_EQ(ids, (std::vector<int32_t>{INT32_MAX - 1, INT32_MAX, 4, 5}));
  // Every id was given once: none is unknown any more.
  EXPECT_EQ(ledger.Report(1000, "", desk.now, batch), Reported::kDouble);
  EXPECT_EQ(ledger.Report(lost.id, "", desk.now, batch), Reported::kLate);
}

}  // namespace
}  // namespace ledger
