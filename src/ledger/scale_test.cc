// Large sets: what is held does not grow with what is done.

#include <chrono>
#include <cstdio>

#include <gtest/gtest.h>

#include "ledger/audit.h"
#include "ledger/ledger.h"
#include "ledger/testing.h"

namespace ledger {
namespace {

using testing::At;
using testing::kJob;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(LedgerScale, TenThousandMillionRecordsInAMillionShardsAreHeldInLittleRoom) {
  Ledger ledger(kJob);
  std::string log = LogHeader(kJob);
  Batch batch;
  ASSERT_TRUE(ledger.Register({.name = "big",
                               .size = 10'000'000'000,
                               .shard_size = 10'000,
                               .shuffle_shards = true,
                               .seed = 1},
                              batch));
  constexpr int kMembers = 64;
  std::vector<std::string> names;
  for (int i = 0; i < kMembers; ++i) {
    names.push_back("worker-" + std::to_string(i) + "@0");
    ledger.Join(names.back(), i, At(0), batch);
  }
  auto start = std::chrono::steady_clock::now();
  size_t most_held = 0;
  for (int64_t round = 0; !ledger.Complete(); ++round) {
    for (const std::string& name : names) {
      for (const Lease& lease :
           ledger.Take("big", name, 1, At(static_cast<double>(round)), batch)) {
        ASSERT_EQ(ledger.Report(lease.id, "", At(static_cast<double>(round)), batch),
                  Reported::kDone);
      }
    }
    log += Framed(batch);
    batch = {};
    if (round % 100 == 0) most_held = std::max(most_held, ledger.Held());
  }
  std::printf("10^6 shards handed out and reported: %.2f s, log %zu bytes, held %zu\n",
              SecondsSince(start), log.size(), most_held);
  EXPECT_LT(most_held, 1500u);
  EXPECT_EQ(ledger.Look("big", "").records_left, 0);
  EXPECT_LT(ledger.Snapshot(0).size(), 20'000u);

  start = std::chrono::steady_clock::now();
  size_t good = 0;
  const auto replayed = Ledger::Replay(kJob, log, &good);
  std::printf("replay of them: %.2f s\n", SecondsSince(start));
  ASSERT_TRUE(replayed);
  EXPECT_EQ(good, log.size());
  EXPECT_EQ(replayed->Snapshot(0), ledger.Snapshot(0));

  start = std::chrono::steady_clock::now();
  const auto audit = AuditLog(kJob, log);
  std::printf("audit of them: %.2f s\n", SecondsSince(start));
  ASSERT_TRUE(audit) << audit.error().text();
  ASSERT_EQ(audit->sets.at(0).epochs.size(), 1u);
  EXPECT_EQ(audit->sets[0].epochs[0].once, 10'000'000'000);
}

}  // namespace
}  // namespace ledger
