#include "ledger/ledger.h"

#include <gtest/gtest.h>

#include "ledger/testing.h"

namespace ledger {
namespace {

using std::chrono::seconds;
using testing::Desk;
using Names = std::vector<std::string>;

SetParams Iris(int32_t epochs = 1) {
  return {.name = "iris", .size = 150, .shard_size = 64, .epochs = epochs};
}

// Members called "a", "b", ...
Desk DeskWith(const SetParams& params, int members) {
  Desk desk;
  desk.Register(params);
  for (int i = 0; i < members; ++i) desk.Join(std::string(1, static_cast<char>('a' + i)));
  return desk;
}

std::string Span(const Lease& lease) {
  return std::to_string(lease.epoch) + ":" + std::to_string(lease.start) + "-" +
         std::to_string(lease.end);
}

Names Spans(const std::vector<Lease>& leases) {
  Names spans;
  for (const Lease& lease : leases) spans.push_back(Span(lease));
  return spans;
}

TEST(Ledger, HandsOutEachShardOnceAndIsCompleteWhenAllAreReported) {
  Desk desk = DeskWith(Iris(), 1);
  const auto leases = desk.Take("a", 10);
  EXPECT_EQ(Spans(leases), (Names{"1:0-64", "1:64-128", "1:128-150"}));
  for (const Lease& lease : leases) {
    EXPECT_FALSE(desk.ledger.Complete());
    EXPECT_EQ(desk.Report(lease.id), Reported::kDone);
  }
  EXPECT_TRUE(desk.ledger.Complete());
  EXPECT_EQ(
      desk.Look("a"),
      (Standing{.known = true, .complete = true, .records_total = 150, .epoch = 1, .epochs = 1}));
}

TEST(Ledger, SaysHowASetStands) {
  Desk desk = DeskWith(Iris(2), 2);
  EXPECT_EQ(desk.Look("a", "other"), Standing());
  desk.Take("a", 2);
  const Lease lease = desk.TakeOne("b");
  EXPECT_EQ(desk.Look("a"), (Standing{.known = true,
                                      .todo = 3,
                                      .doing = 3,
                                      .held = 2,
                                      .records_left = 300,
                                      .records_total = 300,
                                      .epoch = 1,
                                      .epochs = 2}));
  desk.Report(lease.id);
  EXPECT_EQ(desk.Look("b").records_left, 300 - 22);
  const SetView view = desk.ledger.Sets().at(0);
  EXPECT_EQ(view.todo, 0);
  EXPECT_EQ(view.doing, 2);
  EXPECT_EQ(view.done, 1);
  EXPECT_EQ(view.records_done, 22);
}

TEST(Ledger, KeepsTheFirstRegistrationOfAName) {
  Desk desk;
  EXPECT_EQ(desk.Register(Iris()), Registered::kNew);
  EXPECT_EQ(desk.Register(Iris()), Registered::kSame);
  EXPECT_EQ(desk.Register(Iris(7)), Registered::kConflict);
  EXPECT_EQ(desk.ledger.Sets().at(0).params, Iris());
}

TEST(Ledger, RefusesParametersThatMakeNoShards) {
  const auto problem = [](SetParams params) {
    Ledger ledger(testing::kJob);
    Batch batch;
    const auto result = ledger.Register(params, batch);
    EXPECT_TRUE(batch.empty() || result);
    return result ? "" : result.error().text();
  };
  EXPECT_EQ(problem(Iris()), "");
  EXPECT_EQ(problem({.name = "x", .size = 0, .shard_size = 1}), "data set x: number of records 0");
  EXPECT_EQ(problem({.name = "x", .size = 5, .shard_size = 0}), "data set x: records per shard 0");
  EXPECT_EQ(problem({.name = "x", .size = 5, .shard_size = 1, .epochs = -1}),
            "data set x: number of epochs -1");
  EXPECT_EQ(problem({.name = "x", .size = 1 << 30, .shard_size = 1 << 21, .shuffle_records = true}),
            "data set x: 2097152 records per shard are too many to be shuffled (at most 1048576)");
  EXPECT_EQ(problem({.name = "", .size = 5, .shard_size = 1}), "a data set has no name");
  EXPECT_EQ(problem({.name = "a\nb", .size = 5, .shard_size = 1}),
            "the name of data set a\\nb has a control character");
}

TEST(Ledger, TakesNoMoreSetsThanItsBound) {
  Ledger ledger(testing::kJob);
  Batch batch;
  for (size_t i = 0; i < Ledger::kMostSets; ++i) {
    ASSERT_TRUE(ledger.Register({.name = std::to_string(i), .size = 1, .shard_size = 1}, batch));
  }
  EXPECT_FALSE(ledger.Register({.name = "one more", .size = 1, .shard_size = 1}, batch));
}

TEST(Ledger, GivesNothingToWhoIsNotThere) {
  Desk desk = DeskWith(Iris(), 1);
  EXPECT_TRUE(desk.Take("stranger").empty());
  EXPECT_TRUE(desk.Take("a", 1, "unknown set").empty());
  desk.Leave("a", true);
  EXPECT_TRUE(desk.Take("a").empty());
  desk.Join("a");
  EXPECT_EQ(desk.Take("a").size(), 1u);
}

TEST(Ledger, HandsOutTheNextEpochWhileShardsOfTheOneBeforeAreOut) {
  Desk desk = DeskWith(Iris(2), 2);
  desk.Take("a", 2);
  EXPECT_EQ(Spans(desk.Take("b", 9)), (Names{"1:128-150", "2:0-64", "2:64-128", "2:128-150"}));
  EXPECT_TRUE(desk.Take("b").empty());
  EXPECT_EQ(desk.Look().epoch, 2);
}

TEST(Ledger, WithABarrierTheNextEpochWaitsUntilTheOneBeforeIsSettled) {
  SetParams params = Iris(2);
  params.barrier = true;
  Desk desk = DeskWith(params, 2);
  const auto first = desk.Take("a", 9);
  EXPECT_EQ(first.size(), 3u);
  EXPECT_EQ(desk.Look().todo, 0);
  EXPECT_TRUE(desk.Take("b", 9).empty());
  desk.Report(first[0].id);
  desk.Report(first[1].id);
  desk.Leave("a", false);
  // What came back is of the first epoch, and it alone is to be had.
  const auto back = desk.Take("b", 9);
  EXPECT_EQ(Spans(back), (Names{"1:128-150"}));
  EXPECT_TRUE(desk.Take("b").empty());
  desk.Report(back[0].id);
  EXPECT_EQ(desk.Look().todo, 3);
  EXPECT_EQ(Spans(desk.Take("b", 9)), (Names{"2:0-64", "2:64-128", "2:128-150"}));
}

TEST(Ledger, ABarrierDoesNotWaitForWhatIsQuarantined) {
  SetParams params{.name = "iris", .size = 1, .shard_size = 1, .epochs = 2, .barrier = true};
  Desk desk = DeskWith(params, 1);
  for (int i = 0; i < 3; ++i) desk.Report(desk.TakeOne("a").id, "bad record");
  EXPECT_EQ(Span(desk.TakeOne("a")), "2:0-1");
}

TEST(Ledger, AnEndlessSetGoesOnAndNeverCompletes) {
  Desk desk = DeskWith(Iris(0), 1);
  for (int i = 0; i < 100; ++i) desk.Report(desk.TakeOne("a").id);
  EXPECT_EQ(desk.Look().epoch, 34);
  EXPECT_EQ(desk.Look().records_left, -1);
  EXPECT_FALSE(desk.ledger.Complete());
  // It does not keep the others from being so.
  desk.Register({.name = "small", .size = 1, .shard_size = 1});
  desk.Report(desk.TakeOne("a", "small").id);
  EXPECT_TRUE(desk.ledger.Complete());
}

TEST(Ledger, WhatADeadMemberHadGoesBackAndIsHandedOutFirst) {
  Desk desk = DeskWith(Iris(), 2);
  const Lease lost = desk.TakeOne("a");
  desk.Leave("a", false);
  const Lease again = desk.TakeOne("b");
  EXPECT_EQ(Span(again), Span(lost));
  EXPECT_NE(again.id, lost.id);
}

TEST(Ledger, DeathsNeverQuarantineAShard) {
  Desk desk = DeskWith({.name = "iris", .size = 1, .shard_size = 1}, 0);
  for (int i = 0; i < 50; ++i) {
    const std::string member = "worker-0@" + std::to_string(i);
    desk.Join(member);
    ASSERT_EQ(desk.Take(member).size(), 1u);
    EXPECT_EQ(desk.Leave(member, false).returned, 1);
  }
  EXPECT_TRUE(desk.ledger.Quarantined().empty());
  EXPECT_EQ(desk.Look().todo, 1);
}

TEST(Ledger, AShardWithThreeErrorsIsQuarantinedAndNamed) {
  Desk desk = DeskWith(Iris(), 2);
  EXPECT_EQ(desk.Report(desk.TakeOne("a").id, "broken"), Reported::kReturned);
  desk.TakeOne("b");
  desk.Leave("b", false);  // a death in between does not count
  EXPECT_EQ(desk.Report(desk.TakeOne("a").id, "broken"), Reported::kReturned);
  EXPECT_EQ(desk.Report(desk.TakeOne("a").id, "bro\nken"), Reported::kQuarantined);
  const auto quarantined = desk.ledger.Quarantined();
  ASSERT_EQ(quarantined.size(), 1u);
  EXPECT_EQ(quarantined[0].set, "iris");
  EXPECT_EQ(quarantined[0].epoch, 1);
  EXPECT_EQ(quarantined[0].start, 0);
  EXPECT_EQ(quarantined[0].end, 64);
  EXPECT_EQ(quarantined[0].error, "bro\\nken");
  EXPECT_EQ(desk.Look().records_left, 150 - 64);
  for (const Lease& lease : desk.Take("a", 9)) desk.Report(lease.id);
  EXPECT_TRUE(desk.ledger.Complete());
}

TEST(Ledger, AShardThatDidNotReachItsMemberGoesBackWithoutBlame) {
  Desk desk = DeskWith({.name = "iris", .size = 2, .shard_size = 1}, 1);
  const auto leases = desk.Take("a", 2);
  ASSERT_EQ(leases.size(), 2u);
  EXPECT_EQ(desk.ledger.LeasesOf("a", "iris"), (std::vector<int32_t>{leases[0].id, leases[1].id}));
  EXPECT_EQ(desk.ledger.LeaseAt(leases[1].id), leases[1]);
  EXPECT_EQ(desk.ledger.HolderOf(leases[1].id).member, "a");
  EXPECT_EQ(desk.ledger.HolderOf(leases[1].id).set, "iris");
  EXPECT_TRUE(desk.GiveBack(leases[0].id));
  EXPECT_FALSE(desk.GiveBack(leases[0].id));
  EXPECT_EQ(desk.ledger.LeasesOf("a", "iris"), (std::vector<int32_t>{leases[1].id}));
  EXPECT_EQ(desk.ledger.HolderOf(leases[0].id).member, "");
  EXPECT_EQ(desk.Look("a").todo, 1);
  EXPECT_EQ(desk.Report(leases[0].id), Reported::kLate);
}

TEST(Ledger, ALateReportCountsAndTheShardIsNotHandedOutAgain) {
  Desk desk = DeskWith({.name = "iris", .size = 1, .shard_size = 1}, 2);
  const Lease lease = desk.TakeOne("a");
  desk.Leave("a", false);
  EXPECT_EQ(desk.Look().todo, 1);
  EXPECT_EQ(desk.Report(lease.id), Reported::kLate);
  EXPECT_TRUE(desk.ledger.Complete());
  EXPECT_EQ(desk.Report(lease.id), Reported::kDouble);
}

TEST(Ledger, ALateReportMakesThatOfTheNextOwnerTheDouble) {
  Desk desk = DeskWith({.name = "iris", .size = 1, .shard_size = 1}, 2);
  const Lease first = desk.TakeOne("a");
  desk.Leave("a", false);
  const Lease second = desk.TakeOne("b");
  EXPECT_EQ(desk.Report(first.id), Reported::kLate);
  EXPECT_TRUE(desk.ledger.Complete());
  EXPECT_EQ(desk.Look("b").held, 0);
  EXPECT_EQ(desk.Report(second.id), Reported::kDouble);
  EXPECT_EQ(desk.Look().records_left, 0);
}

TEST(Ledger, ALateErrorChangesNothing) {
  Desk desk = DeskWith({.name = "iris", .size = 1, .shard_size = 1}, 2);
  const Lease first = desk.TakeOne("a");
  desk.Leave("a", false);
  const std::string before = desk.ledger.Snapshot(0);
  EXPECT_EQ(desk.Report(first.id, "I failed"), Reported::kDouble);
  EXPECT_EQ(desk.ledger.Snapshot(0), before);
}

TEST(Ledger, ALateReportFreesAQuarantinedShard) {
  Desk desk = DeskWith({.name = "iris", .size = 1, .shard_size = 1}, 2);
  const Lease first = desk.TakeOne("a");
  desk.Leave("a", false);
  for (int i = 0; i < 3; ++i) desk.Report(desk.TakeOne("b").id, "bad");
  ASSERT_EQ(desk.ledger.Quarantined().size(), 1u);
  EXPECT_EQ(desk.Report(first.id), Reported::kLate);
  EXPECT_TRUE(desk.ledger.Quarantined().empty());
  EXPECT_EQ(desk.ledger.Sets().at(0).records_done, 1);
}

TEST(Ledger, AReportOfALeaseThatWasNeverGivenIsUnknownAndNotLogged) {
  Desk desk = DeskWith(Iris(), 1);
  const Lease lease = desk.TakeOne("a");
  const std::string log = desk.log;
  for (const int32_t id : {0, -1, lease.id + 1, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(desk.Report(id), Reported::kUnknown) << id;
    EXPECT_EQ(desk.Report(id, "error"), Reported::kUnknown) << id;
  }
  EXPECT_EQ(desk.log, log);
}

TEST(Ledger, WhoSucceedsAfterTheEndWasToldIsTakenToHaveDoneItsShards) {
  Desk desk = DeskWith(Iris(), 2);
  desk.Take("a", 3);
  desk.TellEnd("a");
  const auto left = desk.Leave("a", true);
  EXPECT_EQ(left.assumed, 3);
  EXPECT_EQ(left.returned, 0);
  EXPECT_TRUE(desk.ledger.Complete());
}

TEST(Ledger, WhoSucceedsWithoutHavingBeenToldTheEndGivesItsShardsBack) {
  Desk desk = DeskWith(Iris(), 2);
  desk.Register({.name = "other", .size = 1, .shard_size = 1});
  desk.Take("a", 3);
  desk.TellEnd("a", "other");  // of another set
  const auto left = desk.Leave("a", true);
  EXPECT_EQ(left.assumed, 0);
  EXPECT_EQ(left.returned, 3);
  // Told, but then it took another: it knows better.
  desk.Take("b", 2);
  desk.TellEnd("b");
  desk.Take("b", 1);
  EXPECT_EQ(desk.Leave("b", true).returned, 3);
}

TEST(Ledger, WhoFailsAfterTheEndWasToldGivesItsShardsBack) {
  Desk desk = DeskWith(Iris(), 1);
  desk.Take("a", 3);
  desk.TellEnd("a");
  EXPECT_EQ(desk.Leave("a", false).returned, 3);
  EXPECT_TRUE(desk.ledger.Misled().empty());
}

TEST(Ledger, NamesThoseWhoMayBelieveThatTheDataEnded) {
  Desk desk = DeskWith(Iris(), 4);
  const auto held = desk.Take("a", 9);
  EXPECT_EQ(desk.ledger.Misled(), Names());
  desk.TellEnd("b");
  desk.Cut("c");
  EXPECT_EQ(desk.ledger.Misled(), (Names{"b", "c"}));
  desk.Leave("b", true);
  desk.Leave("c", false);  // failed: it believes nothing
  EXPECT_EQ(desk.ledger.Misled(), Names{"b"});
  desk.Away();
  EXPECT_EQ(desk.ledger.Misled(), (Names{"a", "b", "d"}));
  for (const Lease& lease : held) desk.Report(lease.id);
  EXPECT_EQ(desk.ledger.Misled(), Names());  // it was true
}

TEST(Ledger, WhoWasToldTheEndIsMisledOnceTheSetIsRestored) {
  Desk desk = DeskWith(Iris(), 1);
  const std::string checkpoint = desk.ledger.Checkpoint("iris");
  for (const Lease& lease : desk.Take("a", 9)) desk.Report(lease.id);
  desk.TellEnd("a");
  EXPECT_EQ(desk.ledger.Misled(), Names());
  ASSERT_TRUE(desk.Restore(checkpoint));
  EXPECT_EQ(desk.ledger.Misled(), Names{"a"});
}

TEST(Ledger, ShowsWhatEachMemberDidAndHowFast) {
  Desk desk = DeskWith({.name = "iris", .size = 100, .shard_size = 10}, 1);
  for (int i = 0; i < 4; ++i) {
    const Lease lease = desk.TakeOne("a");
    desk.now += seconds(2);
    desk.Report(lease.id);
  }
  desk.TakeOne("a");
  const MemberView view = desk.ledger.Members().at(0);
  EXPECT_EQ(view.name, "a");
  EXPECT_EQ(view.done, 4);
  EXPECT_EQ(view.doing, 1);
  EXPECT_EQ(view.records_done, 40);
  EXPECT_DOUBLE_EQ(view.rate, 5);
  EXPECT_EQ(view.last, desk.now);
  EXPECT_TRUE(view.here);
}

TEST(Ledger, AResetSetBeginsAgainAndOldLeasesAreOver) {
  Desk desk = DeskWith(Iris(3), 1);
  const auto leases = desk.Take("a", 5);
  desk.Report(leases[0].id);
  EXPECT_TRUE(desk.Reset());
  EXPECT_FALSE(desk.Reset("unknown"));
  EXPECT_EQ(desk.Look("a"), (Standing{.known = true,
                                      .todo = 9,
                                      .records_left = 450,
                                      .records_total = 450,
                                      .epoch = 1,
                                      .epochs = 3}));
  EXPECT_TRUE(desk.ledger.IsOver(leases[1].id));
  EXPECT_EQ(desk.Report(leases[1].id), Reported::kDouble);
  EXPECT_EQ(desk.Look().records_left, 450);
}

}  // namespace
}  // namespace ledger
