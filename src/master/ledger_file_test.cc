#include "master/ledger_file.h"

#include <algorithm>
#include <cerrno>
#include <future>
#include <numeric>

#include <gtest/gtest.h>

#include "io/testing/temp_dir.h"

namespace master {
namespace {

const ledger::Job kJob{.uid = "u-1", .name = "mnist"};

base::Time At(int64_t second) { return base::Time(std::chrono::seconds(1'800'000'000 + second)); }

LedgerFile::Opened Open(const std::string& directory, LedgerFile::Options options = {}) {
  auto opened = LedgerFile::Open(directory, kJob, std::move(options));
  CHECK(opened.has_value());
  return std::move(*opened);
}

// What a master does: a set, a member, and then shards taken and reported in turn.
class Workload {
 public:
  static constexpr int kSteps = 12;

  // Appends one step; `durable` runs when it is.
  static void Step(ledger::Ledger& ledger, int step, LedgerFile& file, LedgerFile::Then durable) {
    ledger::Batch batch;
    if (step == 0) {
      CHECK(ledger.Register({.name = "iris", .size = 100, .shard_size = 10}, batch).has_value());
      ledger.Join("worker-0@0", 0, At(0), batch);
    } else if (step % 2 == 1) {
      CHECK(ledger.Take("iris", "worker-0@0", 1, At(step), batch).size() == 1);
    } else {
      CHECK(ledger.Report(step / 2, "", At(step), batch) == ledger::Reported::kDone);
    }
    file.Append(batch, std::move(durable));
  }

  // The state after so many steps.
  static std::string After(int steps) {
    const io::testing::TempDir dir;
    auto opened = Open(dir.path());
    for (int i = 0; i < steps; ++i) Step(opened.ledger, i, *opened.file, {});
    return opened.ledger.Snapshot(0);
  }
};

TEST(LedgerFile, WhatWasAppendedIsThereWhenItIsOpenedAgain) {
  const io::testing::TempDir dir;
  std::string before;
  {
    auto opened = Open(dir.path());
    EXPECT_TRUE(opened.is_new);
    for (int i = 0; i < Workload::kSteps; ++i) Workload::Step(opened.ledger, i, *opened.file, {});
    before = opened.ledger.Snapshot(0);
  }
  const auto again = Open(dir.path());
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(again.cut_off, 0u);
  EXPECT_EQ(again.ledger.Snapshot(0), before);
}

TEST(LedgerFile, ATornTailIsCutOffAndTheRestGoesOn) {
  const io::testing::TempDir dir;
  for (int i = 0; i < 2; ++i) {
    {
      auto opened = Open(dir.path());
      EXPECT_EQ(opened.cut_off, i == 0 ? 0u : 5u);
      Workload::Step(opened.ledger, i, *opened.file, {});
    }
    ASSERT_TRUE(io::AppendFile(dir.path() + "/log", "\x20half").has_value());
  }
  EXPECT_EQ(Open(dir.path()).ledger.Snapshot(0), Workload::After(2));
}

TEST(LedgerFile, ALedgerOfAnotherJobIsRefusedByName) {
  const io::testing::TempDir dir;
  Open(dir.path());
  const auto other = LedgerFile::Open(dir.path(), {.uid = "u-2", .name = "iris"}, {});
  ASSERT_FALSE(other.has_value());
  EXPECT_NE(other.error().text().find("ledger of job mnist (u-1), not of iris (u-2)"),
            std::string::npos)
      << other.error().text();
}

TEST(LedgerFile, TwoMastersDoNotShareALedger) {
  const io::testing::TempDir dir;
  const auto first = Open(dir.path());
  const auto second = LedgerFile::Open(dir.path(), kJob, {});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().kind(), base::ErrorKind::kTaken);
}

TEST(LedgerFile, ASnapshotShortensTheNextStartAndChangesNothing) {
  const io::testing::TempDir dir;
  std::string before;
  {
    auto opened = Open(dir.path(), {.snapshot_every = 64});
    int snapshots = 0;
    for (int i = 0; i < Workload::kSteps; ++i) {
      Workload::Step(opened.ledger, i, *opened.file, {});
      if (!opened.file->WantsSnapshot()) continue;
      opened.file->Snapshot(opened.ledger.Snapshot(opened.file->NextOffset()));
      ++snapshots;
    }
    EXPECT_GT(snapshots, 1);
    before = opened.ledger.Snapshot(0);
  }
  EXPECT_EQ(Open(dir.path()).ledger.Snapshot(0), before);
  // What it shortens is still there: the snapshot is only used where it helps.
  ASSERT_TRUE(io::Exists(dir.path() + "/snapshot"));
  ASSERT_TRUE(io::WriteFile(dir.path() + "/snapshot", "garbage").has_value());
  EXPECT_EQ(Open(dir.path()).ledger.Snapshot(0), before);
}

// Lets one sync wait, and counts.
class SlowDisk : public Disk {
 public:
  int Sync(int fd) override {
    if (++syncs == 2) {  // the first is that of Open
      begun.set_value();
      go_on.get_future().wait();
    }
    return Disk::Sync(fd);
  }
  std::atomic<int> syncs = 0;
  std::promise<void> begun, go_on;
};

TEST(LedgerFile, WhatArrivesDuringASyncSharesTheNextOne) {
  const io::testing::TempDir dir;
  const auto disk = std::make_shared<SlowDisk>();
  auto opened = Open(dir.path(), {.disk = disk});
  std::vector<int> order;
  Workload::Step(opened.ledger, 0, *opened.file, [&] { order.push_back(0); });
  disk->begun.get_future().wait();
  for (int i = 1; i < Workload::kSteps; ++i)
    Workload::Step(opened.ledger, i, *opened.file, [&, i] { order.push_back(i); });
  opened.file->Append({}, [&] { order.push_back(Workload::kSteps); });
  EXPECT_TRUE(order.empty());  // nobody is answered before the sync
  disk->go_on.set_value();
  opened.file.reset();
  EXPECT_EQ(disk->syncs, 3);
  std::vector<int> all(Workload::kSteps + 1);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
}

TEST(LedgerFile, WhatIsGatheredSharesOneSync) {
  const io::testing::TempDir dir;
  const auto disk = std::make_shared<SlowDisk>();
  disk->go_on.set_value();
  auto opened = Open(dir.path(), {.disk = disk});
  opened.file->Gather(true);
  for (int i = 0; i < Workload::kSteps; ++i) {
    Workload::Step(opened.ledger, i, *opened.file, {});
    EXPECT_EQ(disk->syncs, 1);  // that of Open
  }
  opened.file->Gather(false);
  disk->begun.get_future().wait();  // it begins without a further Append
  opened.file.reset();
  EXPECT_EQ(disk->syncs, 2);
}

// The k-th call of the file fails; a write may get a part of its bytes to the disk before.
class FailingDisk : public Disk {
 public:
  FailingDisk(int which, size_t part) : which_(which), part_(part) {}

  ssize_t Write(int fd, const char* bytes, size_t size) override {
    if (++calls < which_) return Disk::Write(fd, bytes, size);
    CHECK(Disk::Write(fd, bytes, std::min(part_, size)) >= 0);
    errno = ENOSPC;
    return -1;
  }
  int Sync(int fd) override {
    if (++calls < which_) return Disk::Sync(fd);
    errno = EIO;
    return -1;
  }
  int calls = 0;

 private:
  const int which_;
  const size_t part_;
};

TEST(LedgerFile, EveryWriteAndSyncFailedInTurnNothingAnsweredIsLostAndNothingIsInvented) {
  std::vector<std::string> states;
  for (int i = 0; i <= Workload::kSteps; ++i) states.push_back(Workload::After(i));
  int runs_that_failed = 0;
  for (const size_t part : {size_t{0}, size_t{1}, size_t{9}, size_t{1000}}) {
    for (int which = 1;; ++which) {
      const io::testing::TempDir dir;
      const auto disk = std::make_shared<FailingDisk>(which, part);
      std::atomic<int> answered = 0, failures = 0;
      auto opened = LedgerFile::Open(
          dir.path(), kJob, {.disk = disk, .failed = [&](const base::Error&) { ++failures; }});
      if (opened) {
        for (int i = 0; i < Workload::kSteps; ++i) {
          std::promise<void> durable;
          auto answer = durable.get_future();
          Workload::Step(opened->ledger, i, *opened->file,
                         [&, durable = std::move(durable)]() mutable {
                           ++answered;
                           durable.set_value();
                         });
          // A promise that is dropped says that no answer will come.
          while (failures == 0 &&
                 answer.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
          }
        }
        opened->file.reset();
        EXPECT_LE(failures, 1);
      }
      const bool failed = !opened || failures > 0;
      opened = base::Invalid("closed");
      const auto again = Open(dir.path());
      const std::string state = again.ledger.Snapshot(0);
      const auto found = std::ranges::find(states, state);
      ASSERT_NE(found, states.end()) << "a state that never was, call " << which << " failed";
      EXPECT_GE(found - states.begin(), answered) << "call " << which << " failed";
      EXPECT_LE(found - states.begin(), answered + 1);
      if (!failed) break;
      ++runs_that_failed;
    }
  }
  EXPECT_GE(runs_that_failed, 4 * 2 * Workload::kSteps);
}

}  // namespace
}  // namespace master
