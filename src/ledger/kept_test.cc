#include <gtest/gtest.h>

#include "ledger/ledger.h"

namespace ledger {
namespace {

const Job kJob{.uid = "u-1", .name = "mnist"};
const std::string kOne = "worker-0@0", kOther = "worker-1@0";

base::Time At(int64_t second) { return base::Time(std::chrono::seconds(1'800'000'000 + second)); }

class Kept : public testing::Test {
 protected:
  Kept() {
    (void)ledger.Register({.name = "iris", .size = 150, .shard_size = 10}, batch).value();
    ledger.Join(kOne, 0, At(0), batch);
    ledger.Join(kOther, 1, At(0), batch);
  }

  std::vector<int32_t> Take(const std::string& member, size_t most) {
    std::vector<int32_t> ids;
    for (const Lease& lease : ledger.Take("iris", member, most, At(1), batch)) {
      ids.push_back(lease.id);
    }
    return ids;
  }
  bool Keep(const std::vector<int32_t>& ids, const std::string& value) {
    return ledger.Keep("iris", kOne, ids, "worker-0", value, At(2), batch).value();
  }
  std::string Value(const Ledger& of) const {
    const std::string* value = of.Kept("iris", "worker-0");
    return value ? *value : "(none)";
  }

  Ledger ledger{kJob};
  Batch batch;
};

TEST_F(Kept, ModelAndShardsAreKeptInOneStroke) {
  const auto ids = Take(kOne, 3);
  EXPECT_EQ(Value(ledger), "(none)");
  EXPECT_TRUE(Keep(ids, "model-1"));
  EXPECT_EQ(Value(ledger), "model-1");
  EXPECT_EQ(ledger.Look("iris", kOne).records_left, 120);
  EXPECT_EQ(ledger.Look("iris", kOne).held, 0);
}

TEST_F(Kept, SaidAgainItIsNoChange) {
  const auto ids = Take(kOne, 3);
  EXPECT_TRUE(Keep(ids, "model-1"));
  const Batch before = batch;
  EXPECT_TRUE(Keep(ids, "model-1"));
  EXPECT_EQ(batch.entries, before.entries);
}

TEST_F(Kept, ShardsThatAnotherMayHaveAreNotCountedAndNeitherAreTheRest) {
  auto ids = Take(kOne, 2);
  const auto others = Take(kOther, 1);
  const auto refused = [&](std::vector<int32_t> leases) {
    const Batch before = batch;
    EXPECT_FALSE(Keep(leases, "model-1"));
    EXPECT_EQ(batch.entries, before.entries);
  };
  refused({ids[0], others[0]});
  refused({ids[0], 99});
  refused({ids[0], ids[0]});
  ledger.Leave(kOne, false, At(2), batch);
  EXPECT_FALSE(ledger.Keep("iris", kOne, ids, "worker-0", "model-1", At(3), batch).has_value());
  ledger.Join(kOne, 0, At(4), batch);
  refused(ids);
  EXPECT_EQ(Value(ledger), "(none)");
}

TEST_F(Kept, IsThereAfterAReplayAndAfterASnapshot) {
  EXPECT_TRUE(Keep(Take(kOne, 3), "model-1"));
  EXPECT_TRUE(Keep(Take(kOne, 1), "model-2"));
  size_t good = 0;
  const auto replayed = Ledger::Replay(kJob, LogHeader(kJob) + Framed(batch), &good);
  ASSERT_TRUE(replayed.has_value()) << replayed.error().text();
  EXPECT_EQ(Value(*replayed), "model-2");
  EXPECT_EQ(replayed->Look("iris", kOne), ledger.Look("iris", kOne));
  uint64_t offset = 0;
  const auto restored = Ledger::FromSnapshot(kJob, ledger.Snapshot(7), &offset);
  ASSERT_TRUE(restored.has_value()) << restored.error().text();
  EXPECT_EQ(Value(*restored), "model-2");
  EXPECT_EQ(restored->Snapshot(7), ledger.Snapshot(7));
}

TEST_F(Kept, IsForgottenWhenTheSetBeginsAgain) {
  EXPECT_TRUE(Keep(Take(kOne, 3), "model-1"));
  EXPECT_TRUE(ledger.Reset("iris", batch));
  EXPECT_EQ(Value(ledger), "(none)");
}

TEST_F(Kept, RefusesWhatTheLogCannotHold) {
  const auto keep = [&](std::string set, std::string key, std::string value) {
    return ledger.Keep(set, kOne, {}, key, value, At(2), batch).has_value();
  };
  EXPECT_TRUE(keep("iris", std::string(200, 'k'), std::string(1000, 'v')));
  EXPECT_FALSE(keep("iris", "", "v"));
  EXPECT_FALSE(keep("iris", std::string(201, 'k'), "v"));
  EXPECT_FALSE(keep("iris", "k", std::string(1001, 'v')));
  EXPECT_FALSE(keep("iris", "k\n", "v"));
  EXPECT_FALSE(keep("iris", "k", std::string(1, 0)));
  EXPECT_FALSE(keep("mnist", "k", "v"));
}

}  // namespace
}  // namespace ledger
