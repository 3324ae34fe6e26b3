#include "core/restart_policy.h"

#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

Ending Exit(int32_t code) { return {.code = code}; }

TEST(RestartPolicy, SaysWhetherAnExitCodeAllowsARestart) {
  struct Row {
    int32_t code;
    Meaning never, on_failure, always, exit_code;
  };
  using enum Meaning;
  for (const Row& row : {Row{0, kFine, kFine, kRetryable, kFine},
                         Row{1, kPermanent, kRetryable, kRetryable, kPermanent},
                         Row{2, kPermanent, kRetryable, kRetryable, kPermanent},
                         Row{3, kPermanent, kRetryable, kRetryable, kPermanent},
                         Row{127, kPermanent, kRetryable, kRetryable, kPermanent},
                         Row{128, kPermanent, kRetryable, kRetryable, kRetryable},
                         Row{130, kPermanent, kRetryable, kRetryable, kRetryable},
                         Row{137, kPermanent, kRetryable, kRetryable, kRetryable},
                         Row{138, kPermanent, kRetryable, kRetryable, kRetryable},
                         Row{139, kPermanent, kRetryable, kRetryable, kRetryable},
                         Row{143, kPermanent, kRetryable, kRetryable, kRetryable},
                         Row{255, kPermanent, kRetryable, kRetryable, kRetryable},
                         Row{42, kDisruption, kDisruption, kDisruption, kDisruption}}) {
    EXPECT_EQ(MeaningOf(Exit(row.code), RestartPolicy::kNever, false), row.never) << row.code;
    EXPECT_EQ(MeaningOf(Exit(row.code), RestartPolicy::kOnFailure, false), row.on_failure);
    EXPECT_EQ(MeaningOf(Exit(row.code), RestartPolicy::kAlways, false), row.always) << row.code;
    EXPECT_EQ(MeaningOf(Exit(row.code), RestartPolicy::kExitCode, false), row.exit_code);
  }
}

TEST(RestartPolicy, AlwaysLetsThoseEndOnWhomTheJobWaits) {
  EXPECT_EQ(MeaningOf(Exit(0), RestartPolicy::kAlways, /*may_end=*/true), Meaning::kFine);
}

TEST(RestartPolicy, ADisruptionIsNoFailureUnderAnyPolicy) {
  for (RestartPolicy policy : {RestartPolicy::kNever, RestartPolicy::kOnFailure,
                               RestartPolicy::kAlways, RestartPolicy::kExitCode}) {
    EXPECT_EQ(MeaningOf({.code = 137, .disruption = "evicted"}, policy, true),
              Meaning::kDisruption);
    EXPECT_EQ(MeaningOf({.code = 0, .disruption = "evicted"}, policy, true), Meaning::kDisruption);
  }
}

TEST(RestartPolicy, AReplicaThatWeEndedHasNotDoneItsWork) {
  EXPECT_EQ(MeaningOf({.code = 143, .stopped = true}, RestartPolicy::kNever, true),
            Meaning::kDisruption);
  EXPECT_EQ(MeaningOf({.code = 0, .stopped = true}, RestartPolicy::kNever, true),
            Meaning::kDisruption);
}

TEST(RestartPolicy, WhatCouldNotBeStartedIsNotTriedAgain) {
  for (int32_t code : {0, 127, 255}) {
    EXPECT_EQ(
        MeaningOf({.code = code, .start_error = "no such file"}, RestartPolicy::kOnFailure, false),
        Meaning::kPermanent);
  }
}

TEST(RestartScope, AutoIsReplicaWithParameterServersOrElasticWorkersElseJob) {
  using enum api::RestartScope;
  EXPECT_EQ(ScopeOf(MakeJob({.worker = 2})), kJob);
  EXPECT_EQ(ScopeOf(MakeJob({.chief = 1, .worker = 2, .evaluator = 1})), kJob);
  EXPECT_EQ(ScopeOf(MakeJob({.ps = 1, .worker = 2})), kReplica);
  api::Job elastic = MakeJob({.worker = 2});
  elastic.extensions.elastic = api::Elastic{1, 4};
  EXPECT_EQ(ScopeOf(elastic), kReplica);
  api::Job dynamic = MakeJob({.worker = 2});
  dynamic.spec.enable_dynamic_worker = true;
  EXPECT_EQ(ScopeOf(dynamic), kReplica);
}

TEST(RestartScope, WhatTheAuthorSaysWins) {
  api::Job job = MakeJob({.ps = 1, .worker = 2});
  job.extensions.restart_scope = api::RestartScope::kJob;
  EXPECT_EQ(ScopeOf(job), api::RestartScope::kJob);
  job = MakeJob({.worker = 2});
  job.extensions.restart_scope = api::RestartScope::kReplica;
  EXPECT_EQ(ScopeOf(job), api::RestartScope::kReplica);
}

TEST(RestartedWith, ALostParameterServerTakesTheCoordinatorAlong) {
  using Set = std::set<ReplicaId>;
  EXPECT_EQ(RestartedWith(MakeJob({.chief = 1, .ps = 2, .worker = 2}), kPs1), (Set{kPs1, kChief0}));
  EXPECT_EQ(RestartedWith(MakeJob({.ps = 1, .worker = 2, .master = 1}), kPs0),
            (Set{kPs0, Id(Role::kMaster, 0)}));
  EXPECT_EQ(RestartedWith(MakeJob({.ps = 1, .worker = 2}), kPs0), (Set{kPs0, kWorker0}));
  EXPECT_EQ(RestartedWith(MakeJob({.ps = 2}), kPs0), (Set{kPs0}));
  EXPECT_EQ(RestartedWith(MakeJob({.chief = 1, .ps = 1, .worker = 2}), kWorker1), (Set{kWorker1}));
  EXPECT_EQ(RestartedWith(MakeJob({.chief = 1, .ps = 2, .worker = 2}), kPs1, /*silent=*/true),
            (Set{kPs1, kChief0, kWorker0, kWorker1}));
  EXPECT_EQ(RestartedWith(MakeJob({.chief = 1, .ps = 1, .worker = 2}), kWorker1, /*silent=*/true),
            (Set{kChief0, kWorker1}));
  EXPECT_EQ(RestartedWith(MakeJob({.worker = 2}), kWorker1, /*silent=*/true), (Set{kWorker1}));
}

TEST(Backoff, TheFirstRestartComesAtOnceThenOneSecondDoublingToFiveMinutes) {
  const std::vector<Duration> expected = {0s, 0s, 1s, 2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 300s};
  for (int32_t n = 0; n < std::ssize(expected); ++n) EXPECT_EQ(BackoffAfter(n), expected[n]) << n;
  EXPECT_EQ(BackoffAfter(2'000'000'000), 5min);
}

TEST(Backoff, GrowsWithFailuresInARow) {
  World world(MakeJob({.worker = 2}));
  for (const Duration pause : {0s, 1s, 2s, 4s}) {
    world.Settle().After(10s).End(kWorker0, 137).Settle();
    EXPECT_EQ(world.job.status.gang.not_before, world.now + pause);
    if (pause == 0s) continue;
    EXPECT_TRUE(world.Live().empty());
    EXPECT_EQ(Reconcile(world.job, world.observed, {}, world.now).look_again, world.now + pause);
    EXPECT_TRUE(world.After(pause - 1us).Settle().Live().empty());
    EXPECT_EQ(world.After(1us).Settle().Live().size(), 2u);
  }
}

TEST(Backoff, StartsAfreshOnceAnAttemptHasLastedTenMinutes) {
  World world(MakeJob({.worker = 2}));
  for (int i = 0; i < 4; ++i) world.Settle().After(10s).End(kWorker0, 137).Settle().After(5min);
  world.Settle().After(10min).End(kWorker0, 137).Settle();
  EXPECT_EQ(world.job.status.gang.not_before, world.now);
  EXPECT_EQ(world.Live().size(), 2u);
}

TEST(Backoff, StartsAfreshAlsoForOneThatVanishedAfterALongTime) {
  World world(MakeJob({.worker = 2}));
  for (int i = 0; i < 4; ++i) world.Settle().After(10s).Vanish(kWorker0).Settle().After(5min);
  world.Settle().After(1h).Vanish(kWorker0).Settle();
  EXPECT_EQ(world.job.status.gang.not_before, world.now);
}

TEST(Backoff, DisruptionsHaveARowOfTheirOwn) {
  World world(MakeJob({.worker = 2}));
  for (int i = 0; i < 3; ++i) world.Settle().After(10s).Disrupt(kWorker0).Settle().After(10s);
  world.Settle().After(10s).End(kWorker0, 137).Settle();
  EXPECT_EQ(world.job.status.gang.not_before, world.now);
  EXPECT_EQ(world.job.status.disruptions, 3);
  EXPECT_EQ(world.job.status.restarts, 1);
}

TEST(Backoff, APauseWrittenUnderAClockAheadOfOursIsNotKept) {
  World world(MakeJob({.worker = 1}));
  world.job.status.gang.not_before = kStart + 24h;
  EXPECT_EQ(world.Settle().Live().size(), 1u);
}

}  // namespace
}  // namespace core
