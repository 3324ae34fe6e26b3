// In which order shards and records are handed out.

#include <algorithm>
#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "ledger/ledger.h"
#include "ledger/testing.h"

namespace ledger {
namespace {

using testing::Desk;

std::string Span(const Lease& lease) {
  return std::to_string(lease.epoch) + ":" + std::to_string(lease.start) + "-" +
         std::to_string(lease.end);
}

TEST(Order, ShuffledRecordsAreEachRecordOfTheSetOnceAnEpoch) {
  Desk desk;
  desk.Register({.name = "iris",
                 .size = 150,
                 .shard_size = 64,
                 .epochs = 2,
                 .shuffle_records = true,
                 .seed = 7});
  desk.Join("a");
  std::map<int64_t, std::vector<int64_t>> by_epoch;
  for (const Lease& lease : desk.Take("a", 9)) {
    EXPECT_EQ(static_cast<int64_t>(lease.records.size()), lease.end - lease.start);
    auto& all = by_epoch[lease.epoch];
    all.insert(all.end(), lease.records.begin(), lease.records.end());
  }
  ASSERT_EQ(by_epoch.size(), 2u);
  EXPECT_NE(by_epoch[1], by_epoch[2]);
  for (auto& [epoch, all] : by_epoch) {
    EXPECT_FALSE(std::ranges::is_sorted(all));
    std::ranges::sort(all);
    for (int64_t i = 0; i < 150; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], i);
  }
}

// The order of first hand-outs, as a number.
uint32_t OrderWith(int workers, bool deaths) {
  Desk desk;
  desk.Register({.name = "iris",
                 .size = 10'007,
                 .shard_size = 10,
                 .epochs = 3,
                 .shuffle_shards = true,
                 .seed = 42});
  int born = 0;
  std::vector<std::string> names;
  std::map<std::string, std::vector<Lease>> held;
  for (int i = 0; i < workers; ++i) {
    names.push_back("w" + std::to_string(born++));
    desk.Join(names.back());
  }
  std::map<std::string, bool> seen;
  uint32_t digest = 0;
  uint64_t random = 1;
  while (!desk.ledger.Complete()) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    std::string& name = names[(random >> 33) % names.size()];
    auto& leases = held[name];
    if (deaths && (random >> 50) % 16 == 0) {
      desk.Leave(name, false);
      leases.clear();
      name = "w" + std::to_string(born++);
      desk.Join(name);
    } else if (!leases.empty() && (random >> 40) % 2 == 0) {
      EXPECT_EQ(desk.Report(leases.back().id), Reported::kDone);
      leases.pop_back();
    } else {
      for (Lease& lease : desk.Take(name, 1 + (random >> 45) % 3)) {
        if (!std::exchange(seen[Span(lease)], true)) {
          digest = base::ExtendCrc32c(digest, Span(lease) + ",");
        }
        leases.push_back(std::move(lease));
      }
    }
  }
  EXPECT_EQ(seen.size(), 3u * 1001);
  return digest;
}

TEST(Order, OfFirstHandOutsIsTheSameForAnyNumberOfWorkersAndDeaths) {
  const uint32_t expected = OrderWith(1, false);
  for (const int workers : {1, 2, 3, 7, 64}) {
    EXPECT_EQ(OrderWith(workers, false), expected) << workers;
    EXPECT_EQ(OrderWith(workers, true), expected) << workers << " with deaths";
  }
}

}  // namespace
}  // namespace ledger
