#include "sweep/study.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "sweep/importance.h"
#include "sweep/prune.h"
#include "sweep/rng.h"
#include "sweep/search.h"

namespace sweep {
namespace {

Space Numbers(int count) {
  Space space;
  for (int i = 0; i < count; ++i) {
    space.push_back({.name = std::string(1, static_cast<char>('a' + i)), .low = 0, .high = 1});
  }
  return space;
}

double Bowl(const Point& x) {
  double sum = 0;
  for (double v : x) sum += (v - 0.3) * (v - 0.3);
  return sum;
}

// Runs all trials with `slots` at once; the one to go on with is drawn by chance.
std::vector<Trial> RunAll(const Settings& settings, int slots, uint64_t chance, int reports,
                          int kill_after = -1) {
  Study study(settings);
  Rng rng(chance, 0);
  std::map<int, int> running;  // reports so far
  int done = 0;
  while (!study.AllOver()) {
    while (static_cast<int>(running.size()) < slots && study.CanAsk())
      running[study.Ask().number] = 0;
    auto turn = running.begin();
    std::advance(turn, static_cast<int>(rng.Below(running.size())));
    const int number = turn->first;
    const Point point = study.trials()[static_cast<size_t>(number)].point;
    if (turn->second < reports) {
      ++turn->second;
      study.Report(number, Bowl(point) + 1.0 / turn->second);
    } else {
      study.End(number, {.failed = number % 7 == 3, .reason = "it fails"});
      running.erase(turn);
    }
    for (int decided : study.TakeDecided()) {
      ++done;
      if (study.trials()[static_cast<size_t>(decided)].state == State::kPruned)
        running.erase(decided);
    }
    if (kill_after >= 0 && done >= kill_after) {
      // Only what was decided is remembered; the rest begins again.
      std::vector<Trial> kept = study.trials();
      for (Trial& trial : kept) {
        if (!IsOver(trial)) trial = {.number = trial.number, .point = trial.point};
      }
      Study again(settings, kept);
      for (const Trial& trial : kept) {
        if (IsOver(trial)) continue;
        for (int r = 1; r <= reports; ++r) again.Report(trial.number, Bowl(trial.point) + 1.0 / r);
        again.End(trial.number, {.failed = trial.number % 7 == 3, .reason = "it fails"});
      }
      while (again.CanAsk()) {
        const Trial trial = again.Ask();
        for (int r = 1; r <= reports; ++r) again.Report(trial.number, Bowl(trial.point) + 1.0 / r);
        again.End(trial.number, {.failed = trial.number % 7 == 3, .reason = "it fails"});
      }
      return again.trials();
    }
  }
  return study.trials();
}

TEST(Study, IsTheSameForAnyNumberOfSlotsAndAfterACrash) {
  for (Algorithm algorithm : {Algorithm::kRandom, Algorithm::kTpe, Algorithm::kGp}) {
    for (Pruning pruning : {Pruning::kNone, Pruning::kAsha, Pruning::kMedian}) {
      const Settings settings{
          .space = Numbers(3), .algorithm = algorithm, .pruning = pruning, .seed = 5, .trials = 40};
      const std::vector<Trial> expected = RunAll(settings, 1, 1, 9);
      for (int slots : {2, 3, 8}) {
        EXPECT_EQ(RunAll(settings, slots, static_cast<uint64_t>(slots), 9), expected) << slots;
      }
      EXPECT_EQ(RunAll(settings, 8, 77, 9, 17), expected);
      const auto pruned = std::ranges::count(expected, State::kPruned, &Trial::state);
      EXPECT_EQ(pruned > 10, pruning != Pruning::kNone) << pruned;
    }
  }
}

TEST(Study, WaitsUntilTheWindowIsKnown) {
  Study study({.space = Numbers(1), .trials = 10, .window = 2});
  study.Ask();
  study.Ask();
  EXPECT_FALSE(study.CanAsk());
  study.End(1, {.value = 1});
  EXPECT_FALSE(study.CanAsk());
  study.End(0, {.value = 1});
  EXPECT_TRUE(study.CanAsk());
}

TEST(Study, AsynchronousOnesDoNotWait) {
  Study study({.space = Numbers(1), .trials = 30, .async = true});
  for (int i = 0; i < 30; ++i) study.Ask();
  EXPECT_FALSE(study.CanAsk());
}

TEST(Study, AGridHasEveryPointOnceTheFirstParameterSlowest) {
  const Space space = {*ParseParameter("lr=0.1,0.01,0.001"), *ParseParameter("layers=1..3")};
  Study study({.space = space, .algorithm = Algorithm::kGrid, .trials = 100});
  EXPECT_EQ(study.size(), 9);
  std::set<Point> seen;
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(study.CanAsk());
    const Trial trial = study.Ask();
    seen.insert(trial.point);
    study.End(trial.number, {.value = 1});
    if (i != 1) continue;
    EXPECT_EQ(Text(space[0], trial.point[0]) + Text(space[1], trial.point[1]), "0.12");
  }
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_TRUE(study.AllOver());
}

TEST(Study, AGridOfARangeIsRefused) {
  EXPECT_EQ(CheckSettings({.space = Numbers(1), .algorithm = Algorithm::kGrid}).error().text(),
            "a: a grid needs values, not a range of numbers: --param a=0.1,0.01, or another "
            "--algorithm");
}

TEST(Study, WithoutAMetricATrialHasFailed) {
  Study study({.space = Numbers(1), .trials = 2});
  study.Ask();
  study.End(0, {});
  EXPECT_EQ(study.trials()[0].reason, "no metric");
  study.Ask();
  study.Report(1, std::nan(""));
  study.End(1, {});
  EXPECT_EQ(study.trials()[1].reason, "the metric is not a number");
  EXPECT_EQ(study.Best(), nullptr);
}

TEST(Study, MaximizesIfTold) {
  Study study({.space = Numbers(1), .maximize = true, .trials = 3});
  for (int i = 0; i < 3; ++i) study.Ask();
  for (int i : {0, 1, 2}) study.End(i, {.value = i == 1 ? 9 : i});
  EXPECT_EQ(study.Best()->number, 1);
}

TEST(Study, ADivergedTrialIsNeverTheBest) {
  for (bool maximize : {false, true}) {
    Study study({.space = Numbers(1), .maximize = maximize, .trials = 4});
    for (int i = 0; i < 4; ++i) study.Ask();
    const double values[] = {HUGE_VAL, -HUGE_VAL, 3, std::nan("")};
    for (int i : {0, 1, 2, 3}) study.End(i, {.value = values[i]});
    EXPECT_EQ(study.Best()->number, 2);
  }
}

TEST(Study, ADivergedTrialCountsAsTheWorstFiniteValue) {
  const double values[] = {2, HUGE_VAL, 5, -HUGE_VAL, std::nan(""), 3};
  for (bool maximize : {false, true}) {
    const Settings settings{
        .space = Numbers(1), .pruning = Pruning::kNone, .maximize = maximize, .trials = 6};
    Study study(settings);
    for (int i = 0; i < 6; ++i) study.Ask();
    for (int i = 0; i < 6; ++i) study.End(i, {.value = values[i]});
    std::vector<double> losses;
    for (const Known::Result& result : WhatIsKnown(settings, study.trials(), 20).results)
      losses.push_back(result.loss);
    const double worst = maximize ? -2 : 5;
    const double sign = maximize ? -1 : 1;
    EXPECT_EQ(losses,
              (std::vector<double>{sign * 2, worst, sign * 5, worst, worst, sign * 3}));
  }
}

TEST(Search, AGaussianProcessAvoidsWhereTrialsDiverge) {
  // Losses from 10 to 11 on the left, and no end of them on the right.
  Study study({.space = Numbers(1),
               .algorithm = Algorithm::kGp,
               .pruning = Pruning::kNone,
               .trials = 40,
               .window = 1});
  int diverged = 0;
  while (study.CanAsk()) {
    const Trial trial = study.Ask();
    const double x = trial.point[0];
    diverged += trial.number >= 20 && x > 0.5;
    study.End(trial.number, {.value = x > 0.5 ? HUGE_VAL : 10 + (x - 0.2) * (x - 0.2)});
  }
  EXPECT_LT(diverged, 5);
}

TEST(Prune, NothingWhereScriptsReportOnce) {
  const Settings settings{.space = Numbers(2), .trials = 20};
  for (const Trial& trial : RunAll(settings, 4, 1, 1)) {
    EXPECT_NE(trial.state, State::kPruned) << trial.number;
  }
}

TEST(Prune, RungsOfAshaArePowersOfThree) {
  const Settings settings{.pruning = Pruning::kAsha};
  std::vector<int64_t> rungs;
  for (int64_t i = 0; i <= 100; ++i)
    if (IsRung(settings, i)) rungs.push_back(i);
  EXPECT_EQ(rungs, (std::vector<int64_t>{1, 3, 9, 27, 81}));
}

TEST(Prune, TheBestThirdGoesOn) {
  const Settings settings{.space = Numbers(1), .pruning = Pruning::kAsha};
  std::vector<Trial> trials;
  const auto add = [&](int number, double value) {
    trials.push_back(
        {.number = number, .state = State::kComplete, .reports = 9, .rungs = {{1, value}}});
    return Judge(settings, trials, number, 1);
  };
  EXPECT_EQ(add(0, 5), Judgement::kGoOn);
  EXPECT_EQ(add(1, 6), Judgement::kPrune);
  EXPECT_EQ(add(2, 4), Judgement::kGoOn);
  EXPECT_EQ(add(3, 4.5), Judgement::kPrune);
  EXPECT_EQ(add(4, 4.6), Judgement::kPrune);
  EXPECT_EQ(add(5, 4.4), Judgement::kGoOn);  // the second of six
  EXPECT_EQ(add(6, std::nan("")), Judgement::kPrune);
}

TEST(Search, ModelsBeatChance) {
  for (Algorithm algorithm : {Algorithm::kTpe, Algorithm::kGp}) {
    double by_chance = 0, by_model = 0;
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const auto best = [&](Algorithm a) {
        const Settings settings{.space = Numbers(3),
                                .algorithm = a,
                                .pruning = Pruning::kNone,
                                .seed = seed,
                                .trials = 60};
        Study study(settings);
        while (study.CanAsk()) {
          const Trial trial = study.Ask();
          study.End(trial.number, {.value = Bowl(trial.point)});
        }
        return *study.Best()->value;
      };
      by_chance += best(Algorithm::kRandom);
      by_model += best(algorithm);
    }
    EXPECT_LT(by_model, by_chance / 3);
  }
}

TEST(Search, ModelsFindChoicesAndWholeNumbersToo) {
  const Space space = {*ParseParameter("x=0.0..1.0"), *ParseParameter("n=log:1..256"),
                       *ParseParameter("layers=1,2,3,4"), *ParseParameter("o=a,b,c,d")};
  const auto value = [&](const Point& p) {
    return std::abs(p[0] - 0.3) + std::abs(std::log2(p[1]) - 5) / 8 + std::abs(p[2] - 2) / 4 +
           (p[3] == 2 ? 0 : 0.5);
  };
  double by_chance = 0, by_tpe = 0, by_gp = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (Algorithm algorithm : {Algorithm::kRandom, Algorithm::kTpe, Algorithm::kGp}) {
      Study study({.space = space,
                   .algorithm = algorithm,
                   .pruning = Pruning::kNone,
                   .seed = seed,
                   .trials = 60});
      while (study.CanAsk()) {
        const Trial trial = study.Ask();
        study.End(trial.number, {.value = value(trial.point)});
      }
      (algorithm == Algorithm::kTpe  ? by_tpe
       : algorithm == Algorithm::kGp ? by_gp
                                     : by_chance) += *study.Best()->value;
    }
  }
  EXPECT_LT(by_tpe, by_chance / 2) << by_tpe << " " << by_chance;
  EXPECT_LT(by_gp, by_chance / 4) << by_gp << " " << by_chance;
}

TEST(Search, ModelsTryEveryPointOfASmallSpaceBeforeOneTwice) {
  const Space space = {*ParseParameter("n=1..3"), *ParseParameter("o=a,b,c"),
                       *ParseParameter("layers=1,2,4")};
  for (Algorithm algorithm : {Algorithm::kTpe, Algorithm::kGp}) {
    Study study({.space = space,
                 .algorithm = algorithm,
                 .pruning = Pruning::kNone,
                 .trials = 24,
                 .window = 3});
    std::set<Point> seen;
    int modelled = 0;
    while (study.CanAsk()) {
      const Trial trial = study.Ask();
      // The first are spread without a model.
      const bool is_new = seen.insert(trial.point).second;
      if (trial.number >= 13) modelled += is_new;
      study.End(trial.number, {.value = trial.point[0] + trial.point[1] + trial.point[2]});
    }
    EXPECT_EQ(modelled, 11);
  }
}

TEST(Search, HostileValuesAreTaken) {
  for (Algorithm algorithm : {Algorithm::kTpe, Algorithm::kGp}) {
    Space space = Numbers(2);
    space.push_back(*ParseParameter("n=1..3"));
    space.push_back(*ParseParameter("o=x,y"));
    Study study({.space = space, .algorithm = algorithm, .pruning = Pruning::kNone, .trials = 60});
    const double values[] = {1e308, -1e308, 0, HUGE_VAL, -HUGE_VAL, 1, 1, std::nan("")};
    while (study.CanAsk()) {
      const Trial trial = study.Ask();
      for (size_t i = 0; i < space.size(); ++i) {
        EXPECT_TRUE(ValueFrom(space[i], Text(space[i], trial.point[i])));
      }
      study.End(trial.number, {.value = values[trial.number % 8]});
    }
  }
}

TEST(Importance, NamesWhatMatters) {
  const Settings settings{.space = Numbers(3), .algorithm = Algorithm::kRandom};
  std::vector<Trial> trials;
  for (int i = 0; i < 60; ++i) {
    Trial trial{.number = i, .point = RandomPoint(settings, i), .state = State::kComplete};
    trial.value = 10 * trial.point[1] + trial.point[0];
    trials.push_back(trial);
  }
  const std::vector<double> shares = Importance(settings, trials);
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_GT(shares[1], 0.8);
  EXPECT_NEAR(shares[0] + shares[1] + shares[2], 1, 1e-9);
  EXPECT_TRUE(Importance(settings, {trials.begin(), trials.begin() + 3}).empty());
}

}  // namespace
}  // namespace sweep
