#include "ledger/audit.h"

#include <gtest/gtest.h>

#include "ledger/testing.h"

namespace ledger {
namespace {

using testing::Desk;
using testing::kJob;
using Ranges = std::vector<AuditRange>;

Desk DeskWith(const SetParams& params) {
  Desk desk;
  desk.Register(params);
  for (const std::string name : {"a", "b", "c"}) desk.Join(name);
  return desk;
}

SetAudit AuditOf(const Desk& desk) {
  const auto audit = AuditLog(kJob, desk.log);
  EXPECT_TRUE(audit) << audit.error().text();
  return audit ? audit->sets.at(0) : SetAudit();
}

TEST(Audit, OfARunWithoutFaultsHasEachRecordOnce) {
  Desk desk = DeskWith({.name = "iris", .size = 150, .shard_size = 64, .epochs = 2});
  for (const Lease& lease : desk.Take("a", 9)) desk.Report(lease.id);
  const SetAudit audit = AuditOf(desk);
  EXPECT_EQ(audit.epochs,
            (std::vector<EpochAudit>{{.epoch = 1, .once = 150}, {.epoch = 2, .once = 150}}));
  EXPECT_TRUE(audit.complete);
}

TEST(Audit, NamesWhoReportedMoreThanOnce) {
  Desk desk = DeskWith({.name = "iris", .size = 150, .shard_size = 50});
  const Lease first = desk.TakeOne("a");
  desk.Leave("a", false);
  const Lease second = desk.TakeOne("b");
  EXPECT_EQ(desk.Report(second.id), Reported::kDone);
  EXPECT_EQ(desk.Report(first.id), Reported::kDouble);
  for (const Lease& lease : desk.Take("c", 9)) desk.Report(lease.id);
  EXPECT_EQ(
      AuditOf(desk).epochs,
      (std::vector<EpochAudit>{{.epoch = 1,
                                .once = 100,
                                .more = 50,
                                .more_ranges = {{.start = 0, .end = 50, .by = {"a", "b"}}}}}));
}

TEST(Audit, AReportThatIsSentAgainIsNotASecondTraining) {
  Desk desk = DeskWith({.name = "iris", .size = 50, .shard_size = 50});
  const Lease lease = desk.TakeOne("a");
  desk.Report(lease.id);
  desk.Report(lease.id);
  const SetAudit audit = AuditOf(desk);
  EXPECT_EQ(audit.epochs, (std::vector<EpochAudit>{{.epoch = 1, .once = 50}}));
  EXPECT_EQ(audit.repeats, 1);
}

TEST(Audit, NamesWhatWasNeverReportedAsRanges) {
  for (const bool shuffled : {false, true}) {
    Desk desk = DeskWith(
        {.name = "iris", .size = 1000, .shard_size = 10, .epochs = 2, .shuffle_shards = shuffled});
    const auto leases = desk.Take("a", 6);
    for (const size_t i : {0, 1, 4}) desk.Report(leases[i].id);
    const SetAudit audit = AuditOf(desk);
    ASSERT_EQ(audit.epochs.size(), 1u);
    EXPECT_EQ(audit.epochs[0].once, 30);
    EXPECT_EQ(audit.epochs[0].never, 970);
    EXPECT_EQ(audit.epochs_begun, 1);
    int64_t told = 0;
    for (const AuditRange& range : audit.epochs[0].never_ranges) told += range.end - range.start;
    EXPECT_EQ(told, 970);
    if (!shuffled) {
      EXPECT_EQ(audit.epochs[0].never_ranges,
                (Ranges{{.start = 20, .end = 40}, {.start = 50, .end = 1000}}));
    }
  }
}

TEST(Audit, ShowsWhatWasAssumedUntilItIsSaid) {
  Desk desk = DeskWith({.name = "iris", .size = 100, .shard_size = 50});
  const auto leases = desk.Take("a", 2);
  desk.TellEnd("a");
  desk.Leave("a", true);
  EXPECT_EQ(AuditOf(desk).epochs,
            (std::vector<EpochAudit>{{.epoch = 1,
                                      .assumed = 100,
                                      .assumed_ranges = {{.start = 0, .end = 100, .by = {"a"}}}}}));
  EXPECT_EQ(desk.Report(leases[1].id), Reported::kDouble);
  EXPECT_EQ(AuditOf(desk).epochs,
            (std::vector<EpochAudit>{{.epoch = 1,
                                      .once = 50,
                                      .assumed = 50,
                                      .assumed_ranges = {{.start = 0, .end = 50, .by = {"a"}}}}}));
}

TEST(Audit, ShowsWhatIsQuarantinedAndWhy) {
  Desk desk = DeskWith({.name = "iris", .size = 100, .shard_size = 50});
  for (int i = 0; i < 3; ++i) desk.Report(desk.TakeOne("a").id, "bad");
  desk.Report(desk.TakeOne("a").id);
  EXPECT_EQ(
      AuditOf(desk).epochs,
      (std::vector<EpochAudit>{{.epoch = 1,
                                .once = 50,
                                .quarantined = 50,
                                .quarantined_ranges = {{.start = 0, .end = 50, .error = "bad"}}}}));
}

TEST(Audit, AfterARestoreCountsWhatTheCheckpointHasAndWhatCameAfterIt) {
  Desk desk = DeskWith({.name = "iris", .size = 100, .shard_size = 10});
  for (const Lease& lease : desk.Take("a", 3)) desk.Report(lease.id);
  const std::string checkpoint = desk.ledger.Checkpoint("iris");
  const auto undone = desk.Take("a", 4);
  for (size_t i = 0; i < 3; ++i) desk.Report(undone[i].id);
  ASSERT_TRUE(desk.Restore(checkpoint));
  desk.Report(undone[3].id);  // of the model that was put aside
  for (const Lease& lease : desk.Take("b", 9)) desk.Report(lease.id);
  const SetAudit audit = AuditOf(desk);
  EXPECT_EQ(audit.epochs, (std::vector<EpochAudit>{{.epoch = 1, .once = 70, .restored = 30}}));
  EXPECT_EQ(audit.restores, 1);
  EXPECT_EQ(audit.void_reports, 1);
}

TEST(Audit, OfATornLogIsOfItsWholePart) {
  Desk desk = DeskWith({.name = "iris", .size = 100, .shard_size = 50});
  const Lease lease = desk.TakeOne("a");
  const size_t before = desk.log.size();
  desk.Report(lease.id);
  const auto audit = AuditLog(kJob, std::string_view(desk.log).substr(0, desk.log.size() - 1));
  ASSERT_TRUE(audit);
  EXPECT_EQ(audit->good, before);
  EXPECT_EQ(audit->torn, desk.log.size() - 1 - before);
  EXPECT_EQ(audit->sets.at(0).epochs.at(0).never, 100);
}

TEST(Audit, OfADamagedLogIsAnError) {
  Desk desk = DeskWith({.name = "iris", .size = 100, .shard_size = 50});
  desk.TakeOne("a");
  std::string log = desk.log;
  log[log.size() / 2] ^= 1;
  EXPECT_FALSE(AuditLog(kJob, log));
  EXPECT_FALSE(AuditLog({.uid = "u-2", .name = "other"}, desk.log));
}

}  // namespace
}  // namespace ledger
