// Members that hold shards and say nothing.

#include <gtest/gtest.h>

#include "ledger/ledger.h"
#include "ledger/testing.h"

namespace ledger {
namespace {

using std::chrono::seconds;
using testing::Desk;
using Names = std::vector<std::string>;

SetParams Hundred() { return {.name = "iris", .size = 100, .shard_size = 1}; }

Desk DeskWith(const SetParams& params, const Names& members) {
  Desk desk;
  desk.Register(params);
  for (const std::string& member : members) desk.Join(member);
  return desk;
}

TEST(Silence, ASilentMembersShardsGoBackAfterTwentyTimesTheSlowestMedian) {
  Desk desk = DeskWith(Hundred(), {"a", "b", "c"});
  const Lease stuck = desk.TakeOne("a");
  EXPECT_EQ(desk.ledger.NextExpiry(), base::Time::max());  // nothing was reported: no measure
  desk.now += seconds(100'000);
  EXPECT_EQ(desk.Expire(), Names());
  desk.Report(stuck.id);  // one of 100,000 s, which the median of the others does not feel
  for (int i = 0; i < 5; ++i) {
    for (const std::string member : {"a", "b", "c"}) {
      const Lease lease = desk.TakeOne(member);
      desk.now += seconds(member == "b" ? 10 : 1);
      desk.Report(lease.id);
    }
  }
  const Lease held = desk.TakeOne("a");
  desk.TakeOne("c");
  EXPECT_EQ(desk.ledger.NextExpiry(), desk.now + seconds(200));
  desk.now += seconds(199);
  EXPECT_EQ(desk.Expire(), Names());
  desk.ledger.Heard("c", desk.now);
  desk.now += seconds(1);
  EXPECT_EQ(desk.Expire(), Names{"a"});
  EXPECT_EQ(desk.Look("a").held, 0);
  EXPECT_EQ(desk.Look("c").held, 1);
  EXPECT_EQ(desk.TakeOne("b").start, held.start);
}

TEST(Silence, NobodyIsSilentBeforeAMinute) {
  Desk desk = DeskWith(Hundred(), {"a", "b"});
  desk.Report(desk.TakeOne("b").id);
  desk.TakeOne("a");
  EXPECT_EQ(desk.ledger.NextExpiry(), desk.now + seconds(60));
}

TEST(Silence, SilenceWhileTheMasterWasAwayDoesNotCount) {
  Desk desk = DeskWith(Hundred(), {"a"});
  desk.Report(desk.TakeOne("a").id);
  desk.TakeOne("a");
  desk.now += seconds(10'000);
  desk.Away();
  EXPECT_EQ(desk.Expire(), Names());
  EXPECT_EQ(desk.ledger.NextExpiry(), desk.now + seconds(60));
}

}  // namespace
}  // namespace ledger
