#include <gtest/gtest.h>

#include "base/json.h"
#include "ledger/ledger.h"
#include "ledger/testing.h"

namespace ledger {
namespace {

using testing::Desk;

Desk DeskWith(const SetParams& params) {
  Desk desk;
  desk.Register(params);
  desk.Join("a");
  return desk;
}

std::vector<std::string> Rest(Desk& desk) {
  std::vector<std::string> spans;
  for (;;) {
    const auto leases = desk.Take("a", 7);
    if (leases.empty()) return spans;
    for (const Lease& lease : leases) {
      spans.push_back(std::to_string(lease.epoch) + ":" + std::to_string(lease.start) + "-" +
                      std::to_string(lease.end));
      desk.Report(lease.id);
    }
  }
}

std::string Theirs(std::string_view todo, std::string_view doing, int epoch, int epochs,
                   std::string_view version = "v1.0") {
  return R"({"dataset_name": "iris", "todo": )" + std::string(todo) + R"(, "doing": )" +
         std::string(doing) + R"(, "current_epoch": )" + std::to_string(epoch) +
         R"(, "num_epochs": )" + std::to_string(epochs) +
         R"(, "records_per_task": 64, "dataset_size": 150, "shuffle_shards": false, "version": ")" +
         std::string(version) + R"(", "current_subepoch": 0})";
}

std::string ErrorOf(const std::string& checkpoint) {
  Desk desk = DeskWith({.name = "iris", .size = 150, .shard_size = 64});
  const std::string before = desk.log;
  const auto restored = desk.Restore(checkpoint);
  EXPECT_TRUE(restored || desk.log == before);
  return restored ? "" : restored.error().text();
}

TEST(Checkpoint, IsTheTextOfElasticDlWithOurKeyBehind) {
  Desk desk = DeskWith({.name = "iris", .size = 150, .shard_size = 64, .epochs = 2, .seed = 5});
  desk.Take("a");
  desk.Report(desk.TakeOne("a").id, "an error");
  EXPECT_EQ(desk.ledger.Checkpoint("iris"),
            R"({"dataset_name":"iris","todo":[[64,128],[128,150]],"doing":[[0,64]],)"
            R"("current_epoch":1,"num_epochs":2,"records_per_task":64,"dataset_size":150,)"
            R"("shuffle_shards":false,"version":"v1.0","current_subepoch":0,)"
            R"("trainyard":{"epoch":1,"position":2,"due":[[1,0,0],[1,1,1]],"quarantined":[],)"
            R"("seed":5,"shuffle_records":false,"barrier":false,"task_type":1}})");
  EXPECT_EQ(desk.ledger.Checkpoint("unknown"), "");
}

TEST(Checkpoint, PutsASetBackToWhatItWas) {
  SetParams params{.name = "iris",
                   .size = 1000,
                   .shard_size = 7,
                   .epochs = 3,
                   .shuffle_shards = true,
                   .shuffle_records = true,
                   .seed = UINT64_MAX,
                   .task_type = 2};
  for (const bool barrier : {false, true}) {
    params.barrier = barrier;
    Desk desk = DeskWith(params);
    // At every point: what the restored one hands out is what was not done.
    for (int step = 0; step < 150; ++step) {
      const std::string checkpoint = desk.ledger.Checkpoint("iris");
      Desk other;
      other.Join("a");
      ASSERT_TRUE(other.Restore(checkpoint));
      ASSERT_EQ(other.ledger.Sets().at(0).params, params);
      ASSERT_EQ(other.Look().records_left, desk.Look().records_left);
      Desk same = desk;
      ASSERT_TRUE(same.Restore(checkpoint));
      ASSERT_EQ(same.ledger.Checkpoint("iris"), other.ledger.Checkpoint("iris"));
      if (step % 30 == 0) {
        const int64_t left = other.Look().records_left;
        Desk twin = other;
        const auto rest = Rest(other);
        EXPECT_EQ(rest, Rest(twin));
        EXPECT_EQ(other.Look().records_left, 0);
        EXPECT_GT(left, 0);
      }
      const auto leases = desk.Take("a", 3);
      for (size_t i = 0; i < leases.size(); ++i) {
        if (i != 1 || step % 5 != 0) desk.Report(leases[i].id);
      }
      if (step % 20 == 0) desk.Leave("a", false), desk.Join("a");
    }
  }
}

TEST(Checkpoint, KeepsErrorsAndQuarantine) {
  Desk desk = DeskWith({.name = "iris", .size = 3, .shard_size = 1});
  for (int i = 0; i < 3; ++i) desk.Report(desk.TakeOne("a").id, "bad \"text\"");
  desk.Report(desk.TakeOne("a").id, "once");
  Desk other;
  other.Join("a");
  ASSERT_TRUE(other.Restore(desk.ledger.Checkpoint("iris")));
  ASSERT_EQ(other.ledger.Quarantined().size(), 1u);
  EXPECT_EQ(other.ledger.Quarantined()[0].error, "bad \"text\"");
  EXPECT_EQ(other.Report(other.TakeOne("a").id, "twice"), Reported::kReturned);
  EXPECT_EQ(other.Report(other.TakeOne("a").id, "thrice"), Reported::kQuarantined);
}

TEST(Checkpoint, EndsTheLeasesOfTheSet) {
  Desk desk = DeskWith({.name = "iris", .size = 3, .shard_size = 1});
  const std::string checkpoint = desk.ledger.Checkpoint("iris");
  const Lease lease = desk.TakeOne("a");
  ASSERT_TRUE(desk.Restore(checkpoint));
  EXPECT_EQ(desk.Look("a").held, 0);
  EXPECT_EQ(desk.Report(lease.id), Reported::kDouble);
  EXPECT_EQ(desk.Look().records_left, 3);
}

TEST(Checkpoint, OfTheirsIsTakenAsTheirMasterTakesIt) {
  Desk desk = DeskWith({.name = "iris", .size = 9, .shard_size = 1, .seed = 3});
  // The first shard is done, the second is out, the third was never handed out.
  ASSERT_TRUE(desk.Restore(Theirs("[[128, 150]]", "[[64, 128]]", 2, 3)));
  EXPECT_EQ(desk.Look().epoch, 2);
  EXPECT_EQ(desk.Look().records_left, 150 - 64 + 150);
  EXPECT_EQ(Rest(desk),
            (std::vector<std::string>{"2:64-128", "2:128-150", "3:0-64", "3:64-128", "3:128-150"}));
  // One range twice: it came back from the epoch before.
  ASSERT_TRUE(desk.Restore(Theirs("[[0, 64]]", "[[0, 64]]", 2, 2)));
  EXPECT_EQ(Rest(desk), (std::vector<std::string>{"1:0-64", "2:0-64"}));
  // Before the first shard.
  ASSERT_TRUE(desk.Restore(Theirs("[]", "[]", 0, 1)));
  EXPECT_EQ(Rest(desk).size(), 3u);
  // All done.
  ASSERT_TRUE(desk.Restore(Theirs("[]", "[]", 1, 1)));
  EXPECT_TRUE(desk.ledger.Complete());
}

TEST(Checkpoint, ThatIsNoneIsRefusedAndChangesNothing) {
  const std::string restore = "restore data set iris: ";
  EXPECT_EQ(ErrorOf(Theirs("[]", "[]", 1, 1)), "");
  EXPECT_EQ(ErrorOf(Theirs("[]", "[]", 1, 1, "v2.0")),
            restore + "its version is \"v2.0\", not \"v1.0\"");
  EXPECT_EQ(ErrorOf(Theirs("[]", "[]", 1, 1, "v1.0-compact")),
            restore + "its version is \"v1.0-compact\", not \"v1.0\"");
  EXPECT_EQ(ErrorOf("[]"), restore + "it is no JSON object");
  EXPECT_EQ(ErrorOf("{}"), restore + "its version is \"\", not \"v1.0\"");
  EXPECT_EQ(ErrorOf(R"({"version":"v1.0"})"), restore + "dataset_name is missing");
  EXPECT_EQ(ErrorOf(Theirs("[[0, 65]]", "[]", 1, 1)),
            restore + "todo: [0, 65] is no shard of 64 records");
  EXPECT_EQ(ErrorOf(Theirs("[[1, 65]]", "[]", 1, 1)),
            restore + "todo: [1, 65] is no shard of 64 records");
  EXPECT_EQ(ErrorOf(Theirs("[7]", "[]", 1, 1)), restore + "todo has an element that is no range");
  EXPECT_EQ(ErrorOf(Theirs("[[0, 64]]", "[[0, 64]]", 1, 1)),
            restore + "doing: [0, 64] is there more often than there were epochs");
  EXPECT_EQ(ErrorOf(Theirs("[]", "[]", 5, 2)),
            restore + "current_epoch is not a number from 0 to 2");
  EXPECT_NE(ErrorOf("{"), "");
}

TEST(Checkpoint, OfAnotherSetIsRefused) {
  Desk desk = DeskWith({.name = "iris", .size = 3, .shard_size = 1});
  desk.Register({.name = "other", .size = 3, .shard_size = 1});
  const auto restored = desk.Restore(desk.ledger.Checkpoint("iris"), "other");
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().text(), "restore data set other: it is of data set iris");
  EXPECT_TRUE(desk.Restore(desk.ledger.Checkpoint("other"), ""));
}

TEST(Checkpoint, OfAMillionShardsIsShortAndNotTakenForOneOfTheirs) {
  Desk desk = DeskWith({.name = "iris",
                        .size = 10'000'000'000,
                        .shard_size = 10'000,
                        .epochs = 2,
                        .shuffle_shards = true});
  for (int i = 0; i < 100; ++i) desk.Report(desk.Take("a", 2).at(1).id);
  const std::string checkpoint = desk.ledger.Checkpoint("iris");
  EXPECT_LT(checkpoint.size(), 1000u + 100 * 16);
  EXPECT_EQ(base::StringOr(*base::ParseJson(checkpoint), "version"), "v1.0-compact");
  Desk other;
  other.Join("a");
  ASSERT_TRUE(other.Restore(checkpoint));
  EXPECT_EQ(other.Look().records_left, desk.Look().records_left);
  EXPECT_EQ(other.ledger.Checkpoint("iris"), [&] {
    desk.Leave("a", false);  // what was out is due in both
    return desk.ledger.Checkpoint("iris");
  }());
}

}  // namespace
}  // namespace ledger
