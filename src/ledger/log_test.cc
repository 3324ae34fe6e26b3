#include "ledger/log.h"

#include <map>

#include <gtest/gtest.h>

#include "ledger/ledger.h"
#include "ledger/testing.h"

namespace ledger {
namespace {

using testing::Desk;
using testing::kJob;

// A life with one of everything, and the state after each frame by the offset where it ends.
struct Life {
  std::string log;
  std::map<size_t, std::string> states;
};

Life SomeLife() {
  Desk desk;
  Life life;
  const auto note = [&] {
    desk.now += std::chrono::milliseconds(1234);
    life.states[desk.log.size()] = desk.ledger.Snapshot(0);
  };
  life.states[0] = desk.ledger.Snapshot(0);
  note();
  desk.Register({.name = "iris", .size = 150, .shard_size = 20, .epochs = 2}), note();
  desk.Register({.name = "eval",
                 .size = 50,
                 .shard_size = 20,
                 .epochs = 0,
                 .shuffle_shards = true,
                 .shuffle_records = true,
                 .barrier = true,
                 .seed = UINT64_MAX,
                 .task_type = 2}),
      note();
  for (const std::string name : {"worker-0@0", "worker-1@0", "worker-2@0"}) desk.Join(name), note();
  const std::string checkpoint = desk.ledger.Checkpoint("iris");
  auto leases = desk.Take("worker-0@0", 3);
  note();
  desk.Report(leases[0].id), note();
  desk.Report(leases[1].id, "a record is broken"), note();
  const int32_t late = desk.TakeOne("worker-1@0").id;
  note();
  desk.Leave("worker-1@0", false), note();
  desk.Report(late), note();
  desk.Report(late), note();
  const int32_t evaluated = desk.TakeOne("worker-2@0", "eval").id;
  note();
  desk.Report(evaluated), note();
  desk.TakeOne("worker-2@0", "eval"), note();
  EXPECT_TRUE(desk.GiveBack(leases[2].id));
  note();
  desk.Take("worker-0@0", 2), note();
  desk.TellEnd("worker-0@0"), note();
  desk.Cut("worker-2@0"), note();
  desk.Away(), note();
  desk.now += std::chrono::hours(1);
  desk.Expire(), note();
  desk.Leave("worker-0@0", true), note();
  EXPECT_TRUE(desk.Restore(checkpoint));
  note();
  desk.Join("worker-0@1"), note();
  desk.Take("worker-0@1", 20), note();
  desk.Reset("eval"), note();
  life.log = desk.log;
  return life;
}

TEST(Log, CutAtEveryByteItIsTheStateAfterTheLastWholeFrame) {
  const Life life = SomeLife();
  ASSERT_GT(life.states.size(), 20u);
  for (size_t cut = 0; cut <= life.log.size(); ++cut) {
    const auto whole = std::prev(life.states.upper_bound(cut));
    size_t good = 12345;
    const auto ledger = Ledger::Replay(kJob, std::string_view(life.log).substr(0, cut), &good);
    ASSERT_TRUE(ledger) << "cut at " << cut << ": " << ledger.error().text();
    ASSERT_EQ(good, whole->first) << "cut at " << cut;
    ASSERT_EQ(ledger->Snapshot(0), whole->second) << "cut at " << cut;
  }
}

TEST(Log, GoesOnAfterACutAsIfNothingHadBeenBehindIt) {
  const Life life = SomeLife();
  for (const auto& [offset, state] : life.states) {
    if (offset + 3 >= life.log.size()) continue;
    size_t good = 0;
    auto ledger = Ledger::Replay(kJob, std::string_view(life.log).substr(0, offset + 3), &good);
    ASSERT_TRUE(ledger && good == offset);
    std::string log = offset == 0 ? LogHeader(kJob) : life.log.substr(0, offset);
    Batch batch;
    ASSERT_TRUE(ledger->Register({.name = "new", .size = 1, .shard_size = 1}, batch));
    ledger->Join("newcomer", 77, testing::At(9999), batch);
    EXPECT_EQ(ledger->Take("new", "newcomer", 1, testing::At(9999), batch).size(), 1u);
    log += Framed(batch);
    const auto again = Ledger::Replay(kJob, log, &good);
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(good, log.size());
    EXPECT_EQ(again->Snapshot(0), ledger->Snapshot(0));
  }
}

// Every bit of every byte. Damage is an error, unless it is in the last frame, which then is as
// good as torn; nothing else is ever made of it.
TEST(Log, AFlippedBitIsAnErrorOrATornTailAndNeverAnotherStory) {
  const Life life = SomeLife();
  const size_t last = std::prev(life.states.end(), 2)->first;
  ASSERT_LT(last, life.log.size());
  for (size_t at = 0; at < life.log.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string log = life.log;
      log[at] = static_cast<char>(log[at] ^ (1 << bit));
      size_t good = 0;
      const auto ledger = Ledger::Replay(kJob, log, &good);
      if (at < last) {
        ASSERT_FALSE(ledger) << "byte " << at << " bit " << bit;
      } else {
        ASSERT_TRUE(ledger) << "byte " << at << " bit " << bit << ": " << ledger.error().text();
        ASSERT_EQ(good, last);
        ASSERT_EQ(ledger->Snapshot(0), life.states.at(last));
      }
    }
  }
}

TEST(Log, SaysWhereItIsDamaged) {
  const Life life = SomeLife();
  const size_t frame = std::next(life.states.begin(), 5)->first;
  std::string log = life.log;
  log[frame + 9] = static_cast<char>(log[frame + 9] ^ 1);
  size_t good = 0;
  const auto ledger = Ledger::Replay(kJob, log, &good);
  ASSERT_FALSE(ledger);
  EXPECT_EQ(ledger.error().text(),
            "the ledger is damaged at byte " + std::to_string(frame) + ", and goes on behind it");
}

TEST(Log, AFrameOfZerosAtTheEndIsTorn) {
  const Life life = SomeLife();
  size_t good = 0;
  EXPECT_TRUE(Ledger::Replay(kJob, life.log + std::string(4096, '\0'), &good));
  EXPECT_EQ(good, life.log.size());
  EXPECT_TRUE(Ledger::Replay(kJob, std::string(4096, '\0'), &good));
  EXPECT_EQ(good, 0u);
}

TEST(Log, ALedgerOfAnotherJobIsRefusedByName) {
  const std::string log = LogHeader({.uid = "u-2", .name = "other"});
  size_t good = 0;
  const auto ledger = Ledger::Replay(kJob, log, &good);
  ASSERT_FALSE(ledger);
  EXPECT_EQ(ledger.error().text(), "this is the ledger of job other (u-2), not of mnist (u-1)");
  EXPECT_FALSE(Ledger::Replay({.uid = "u-3", .name = "other"}, log, &good));
}

TEST(Log, WhatIsNoLedgerIsRefused) {
  size_t good = 0;
  const auto error = [&](std::string_view log) {
    const auto ledger = Ledger::Replay(kJob, log, &good);
    return ledger ? "" : ledger.error().text();
  };
  EXPECT_EQ(error("hello"), "this is no ledger: it does not begin as one");
  EXPECT_EQ(error("TYLEDGR2 and more"),
            "the ledger has another format than this version of trainyard writes");
}

// Frames that are whole but tell what cannot have happened.
TEST(Log, AnEntryThatDoesNotFitTheStateIsAnError) {
  const auto error = [](std::initializer_list<Entry> entries) {
    std::string log = LogHeader(kJob);
    for (const Entry& entry : entries) {
      Batch batch;
      PutEntry(batch.entries, entry);
      log += Framed(batch);
    }
    size_t good = 0;
    const auto ledger = Ledger::Replay(kJob, log, &good);
    const std::string text = ledger ? "" : ledger.error().text();
    return text.substr(text.find(": ") + 2);
  };
  const Entry one{.kind = EntryKind::kRegister,
                  .params = {.name = "x", .size = 1, .shard_size = 1}};
  const Entry join{.kind = EntryKind::kJoin, .name = "a"};
  const Entry take{.kind = EntryKind::kTake, .fresh = 1};
  EXPECT_EQ(error({{.kind = EntryKind::kHeader}}), "a second header");
  EXPECT_EQ(error({one, one}), "a set is registered twice");
  EXPECT_EQ(error({one, take}), "an unknown set or member");
  EXPECT_EQ(error({one, join, take, take}), "more shards are handed out than there are");
  EXPECT_EQ(error({one, join, {.kind = EntryKind::kTake, .due = {{1, 0}}}}),
            "a shard that is not due is handed out");
  EXPECT_EQ(error({one, join, take, {.kind = EntryKind::kDone, .lease = 2}}), "an unknown lease");
  EXPECT_EQ(error({one, join, {.kind = EntryKind::kFailed, .lease = 1}}), "an unknown lease");
  EXPECT_EQ(error({{.kind = EntryKind::kLeave, .member = 1}}), "an unknown member");
  EXPECT_EQ(error({{.kind = EntryKind::kReset, .set = 1}}), "an unknown set");
  EXPECT_EQ(
      error({{.kind = EntryKind::kRestore, .params = one.params, .progress = {.cursor = {1, 2}}}}),
      "the cursor is outside of the data set");
  EXPECT_EQ(error({{.kind = EntryKind::kRestore,
                    .params = one.params,
                    .progress = {.cursor = {1, 0}, .due = {{.shard = {1, 0}}}}}}),
            "a shard is due that cannot be");
}

TEST(Log, NoBytesInATextMakeItLookLikeAFrame) {
  Desk desk;
  desk.Register({.name = "iris", .size = 10, .shard_size = 1});
  desk.Join("a");
  Batch evil;
  PutEntry(evil.entries, {.kind = EntryKind::kReset});
  const size_t before = desk.log.size();
  desk.Report(desk.TakeOne("a").id, "error " + Framed(evil));
  // Torn in the middle of the frame that carries it.
  for (size_t cut = before; cut < desk.log.size(); ++cut) {
    size_t good = 0;
    EXPECT_TRUE(Ledger::Replay(kJob, std::string_view(desk.log).substr(0, cut), &good)) << cut;
  }
}

TEST(Log, AnEntryReadsBackAsItWasWritten) {
  const SetParams params{.name = "x",
                         .size = int64_t{1} << 60,
                         .shard_size = 7,
                         .epochs = INT32_MAX,
                         .shuffle_shards = true,
                         .seed = UINT64_MAX,
                         .task_type = -5};
  const Progress progress{.cursor = {3, 9},
                          .due = {{.shard = {1, 2}, .errors = 1}, {.shard = {3, 4}}},
                          .quarantined = {{.shard = {2, 2}, .error = "why"}}};
  const std::vector<Entry> entries = {
      {.kind = EntryKind::kHeader, .uid = "u", .name = "n"},
      {.kind = EntryKind::kRegister, .params = params},
      {.kind = EntryKind::kJoin, .name = "a", .number = INT32_MAX, .time = 12},
      {.kind = EntryKind::kTake, .set = 1, .member = 2, .time = -3, .due = {{1, 2}}, .fresh = 9},
      {.kind = EntryKind::kDone, .lease = 5, .time = 1},
      {.kind = EntryKind::kFailed, .lease = 5, .time = 1, .error = "e"},
      {.kind = EntryKind::kDouble, .lease = 5, .time = 1},
      {.kind = EntryKind::kTellEnd, .set = 1, .member = 2},
      {.kind = EntryKind::kLeave, .member = 2, .time = 7, .succeeded = true},
      {.kind = EntryKind::kExpire, .member = 2, .time = 7},
      {.kind = EntryKind::kCut, .member = 2},
      {.kind = EntryKind::kAway, .time = 7},
      {.kind = EntryKind::kRestore, .params = params, .progress = progress},
      {.kind = EntryKind::kReset, .set = 3},
      {.kind = EntryKind::kGiveBack, .lease = 5, .time = 1},
  };
  std::string bytes;
  for (const Entry& entry : entries) PutEntry(bytes, entry);
  ByteReader reader(bytes);
  for (const Entry& entry : entries) EXPECT_TRUE(ReadEntry(reader) == entry);
  EXPECT_TRUE(reader.ok() && reader.AtEnd());
}

TEST(Log, ANumberIsReadInItsShortestFormOnly) {
  const auto read = [](std::string_view bytes) {
    ByteReader reader(bytes);
    reader.Number();
    return reader.ok();
  };
  EXPECT_TRUE(read(std::string_view("\0", 1)));
  EXPECT_FALSE(read(std::string_view("\x80\0", 2)));
  EXPECT_TRUE(read("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  EXPECT_FALSE(read("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"));
  EXPECT_FALSE(read("\xff"));
  EXPECT_FALSE(read(""));
}

}  // namespace
}  // namespace ledger
