#include "cli/audit_text.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

ledger::Audit TwoEpochs() {
  ledger::SetAudit set;
  set.params.name = "numbers";
  set.params.size = 30;
  set.epochs = {{.epoch = 1, .once = 20, .more = 10, .more_ranges = {{10, 20, {"a@0", "b@1"}}}},
                {.epoch = 2, .once = 25, .never = 5, .never_ranges = {{25, 30}}}};
  return {.sets = {set}};
}

TEST(AuditText, SaysForEachEpochHowOftenItsRecordsWereReported) {
  EXPECT_EQ(AuditInWords(AuditInJson("mnist", TwoEpochs())),
            "numbers: 30 records, not complete\n"
            "  epoch 1: 20 once, 10 more than once\n"
            "    10 to 19 more than once, by a@0, b@1\n"
            "  epoch 2: 25 once, 5 never\n"
            "    25 to 29 never\n");
  EXPECT_EQ(AuditInWords(AuditInJson("mnist", {})), "no data has been registered\n");
}

TEST(AuditText, EpochsOfWhichTheSameIsToldShareALine) {
  ledger::SetAudit set;
  set.params.name = "numbers";
  set.params.size = 30;
  for (int64_t epoch = 1; epoch <= 100; ++epoch) {
    ledger::EpochAudit one{.epoch = epoch, .once = 30};
    if (epoch == 50) one.once = 29;
    set.epochs.push_back(one);
  }
  ledger::Audit audit;
  audit.sets.push_back(set);
  EXPECT_EQ(AuditInWords(AuditInJson("mnist", audit)),
            "numbers: 30 records, not complete\n"
            "  epochs 1 to 49, each: 30 once\n"
            "  epoch 50: 29 once\n"
            "  epochs 51 to 100, each: 30 once\n");
}

TEST(AuditText, SaysHowManyRangesItLeavesOut) {
  ledger::Audit audit = TwoEpochs();
  for (int64_t i = 0; i < 11; ++i) audit.sets[0].epochs[1].never_ranges.push_back({i, i + 1});
  EXPECT_NE(AuditInWords(AuditInJson("mnist", audit)).find("    and 2 ranges more: --json\n"),
            std::string::npos);
}

TEST(AuditText, IsCutToASizeByWhatMattersLeast) {
  const base::Json audit = AuditInJson("mnist", TwoEpochs());
  const std::string all = base::CompactJson(audit);
  EXPECT_EQ(AuditWithin(audit, all.size()), all);
  const auto shorter = base::ParseJson(AuditWithin(audit, all.size() - 1));
  EXPECT_EQ(AuditInWords(*shorter),
            "numbers: 30 records, not complete\n"
            "  epoch 1: 20 once, 10 more than once\n"
            "  epoch 2: 25 once, 5 never\n");
  const auto shortest = base::ParseJson(AuditWithin(audit, base::CompactJson(*shorter).size() - 1));
  EXPECT_EQ(AuditInWords(*shortest),
            "numbers: 30 records, not complete\n"
            "  all epochs: 45 once, 10 more than once, 5 never\n");
  EXPECT_EQ(AuditWithin(audit, 10), "");
}

}  // namespace
}  // namespace cli
