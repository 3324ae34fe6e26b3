// Conditional parameters, from their text to what is suggested for them.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "sweep/importance.h"
#include "sweep/search.h"
#include "sweep/study.h"

namespace sweep {
namespace {

Space SpaceOf(const std::vector<std::string>& texts) {
  Space space;
  for (const std::string& text : texts) space.push_back(*ParseParameter(text));
  return space;
}

std::string Refusal(const std::vector<std::string>& texts) {
  Space space;
  for (const std::string& text : texts) {
    auto parameter = ParseParameter(text);
    if (!parameter) return parameter.error().text();
    space.push_back(*parameter);
  }
  auto checked = CheckSpace(space);
  return checked ? "taken" : checked.error().text();
}

// Both kinds of parent, a chain of conditions, and a parameter before its parent.
Space Tree() {
  return SpaceOf({"depth=1..8 when model=tree", "model=linear,tree,net", "lr=log:1e-4..1",
                  "layers=1..3 when model=net", "units=log:4..512 when layers=2,3",
                  "kind=x,y,z when model=net and layers=3"});
}

double TreeLoss(const Space& space, const Point& point) {
  const std::string model = Text(space[1], point[1]);
  const double lr = std::pow(std::log10(point[2]) + 2, 2) / 10;
  if (model == "linear") return 1 + lr;
  if (model == "tree") return 0.5 + lr + std::abs(point[0] - 5) / 10;
  const double units = point[4] == kInactive ? 1 : std::abs(std::log2(point[4]) - 6) / 5;
  return lr + std::abs(point[3] - 3) / 5 + units + (point[5] == 1 ? 0 : 0.1);
}

bool IsConsistent(const Space& space, const Point& point) {
  for (size_t i = 0; i < space.size(); ++i) {
    if (IsActive(space, i, point) != (point[i] != kInactive)) return false;
  }
  return true;
}

TEST(Conditions, AreReadAndDescribed) {
  const Parameter units = *ParseParameter("units=4..512 when layers=2, 3 and model=net");
  EXPECT_EQ(units.when, (std::vector<Condition>{{"layers", {"2", "3"}}, {"model", {"net"}}}));
  EXPECT_EQ(Describe(units), "4..512");
  EXPECT_EQ(DescribeConditions(units), "layers=2,3 and model=net");
  EXPECT_EQ(*ParseParameter("units=4..512 when " + DescribeConditions(units)), units);
}

TEST(Conditions, ThatCannotHoldAreRefused) {
  EXPECT_EQ(Refusal({"a=1,2", "m=1,2 when a=1"}), "taken");
  EXPECT_EQ(Refusal({"m=1,2 when a=1", "a=1,2"}), "taken");
  EXPECT_EQ(Refusal({"alpha=1,2", "m=1,2 when alhpa=1"}),
            "m: when: there is no parameter alhpa: did you mean alpha?");
  EXPECT_EQ(Refusal({"a=1,2", "m=1,2 when a=3"}), "m: when: a: 3 is none of 1,2");
  EXPECT_EQ(Refusal({"a=1..4", "m=1,2 when a=5"}), "m: when: a: 5 is none of 1..4");
  EXPECT_EQ(Refusal({"a=1..4", "m=1,2 when a=2.5"}), "m: when: a: 2.5 is none of 1..4");
  EXPECT_EQ(Refusal({"a=1..4", "m=1,2 when a="}), "m: when a: a value is empty");
  EXPECT_EQ(Refusal({"a=0.1..0.4", "m=1,2 when a=0.2"}),
            "m: when: a is a range of numbers that are not whole: a condition needs a choice or "
            "whole numbers");
  EXPECT_EQ(Refusal({"m=1,2 when m=1"}), "m: when: a parameter cannot depend on itself");
  EXPECT_EQ(Refusal({"a=1,2 when b=1", "b=1,2 when a=1"}),
            "a: when: the conditions of a and b depend on each other");
  EXPECT_EQ(Refusal({"a=1,2", "m=1,2 when a=1 and a=2"}), "m: when: a is given twice");
  EXPECT_EQ(Refusal({"a=1,2", "m=1,2 when "}),
            "m: \"\" is no condition: when NAME=VALUE, such as when optimizer=sgd");
}

TEST(Conditions, AParameterIsActiveWhereItsParentsAre) {
  const Space space = Tree();
  ASSERT_TRUE(CheckSpace(space));
  std::vector<double> units(space.size(), 0.99);  // net, three layers
  DeactivateUnits(space, units);
  EXPECT_EQ(units, (std::vector<double>{kInactive, 0.99, 0.99, 0.99, 0.99, 0.99}));
  units.assign(space.size(), 0.5);  // tree
  DeactivateUnits(space, units);
  EXPECT_EQ(units, (std::vector<double>{0.5, 0.5, 0.5, kInactive, kInactive, kInactive}));
}

TEST(Conditions, OnlyActiveParametersHaveTextsAndJson) {
  const Space space = SpaceOf({"o=sgd,adam", "m=0.0..0.9 when o=sgd"});
  EXPECT_EQ(base::CompactJson(ToJson(space, {1, kInactive})), R"({"o":"adam"})");
  EXPECT_EQ(Texts(space, {1, kInactive}).size(), 1u);
  EXPECT_EQ(Texts(space, {0, 0.5})[1].second, "0.5");
}

TEST(Conditions, AGridHasEachPointThatExistsOnce) {
  const Space space =
      SpaceOf({"m=1,2 when o=sgd", "o=sgd,adam,none", "k=x,y when m=2", "b=1,2 when o=adam"});
  const auto grid = *Grid(space);
  const double off = kInactive;
  std::set<Point> points(grid.begin(), grid.end());
  EXPECT_EQ(points, (std::set<Point>{{0, 0, off, off},
                                     {1, 0, 0, off},
                                     {1, 0, 1, off},
                                     {off, 1, off, 0},
                                     {off, 1, off, 1},
                                     {off, 2, off, off}}));
  EXPECT_EQ(grid.size(), points.size());
}

TEST(Conditions, EverySuggestionHasTheValuesThatExistAndNoOthers) {
  for (Algorithm algorithm : {Algorithm::kRandom, Algorithm::kTpe, Algorithm::kGp}) {
    Study study({.space = Tree(),
                 .algorithm = algorithm,
                 .pruning = Pruning::kNone,
                 .seed = 3,
                 .trials = 80,
                 .window = 4});
    std::set<double> models;
    while (study.CanAsk()) {
      const Trial trial = study.Ask();
      EXPECT_TRUE(IsConsistent(study.settings().space, trial.point)) << trial.number;
      models.insert(trial.point[1]);
      study.End(trial.number, {.value = TreeLoss(study.settings().space, trial.point)});
    }
    EXPECT_EQ(models.size(), 3u);
  }
}

TEST(Conditions, ModelsFindTheBestBranch) {
  double by_chance = 0, by_tpe = 0, by_gp = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (Algorithm algorithm : {Algorithm::kRandom, Algorithm::kTpe, Algorithm::kGp}) {
      Study study({.space = Tree(),
                   .algorithm = algorithm,
                   .pruning = Pruning::kNone,
                   .seed = seed,
                   .trials = 60,
                   .window = 2});
      while (study.CanAsk()) {
        const Trial trial = study.Ask();
        study.End(trial.number, {.value = TreeLoss(study.settings().space, trial.point)});
      }
      (algorithm == Algorithm::kTpe  ? by_tpe
       : algorithm == Algorithm::kGp ? by_gp
                                     : by_chance) += *study.Best()->value;
    }
  }
  EXPECT_LT(by_tpe, by_chance / 2) << by_tpe << " " << by_chance;
  EXPECT_LT(by_gp, by_chance / 4) << by_gp << " " << by_chance;
}

// The model saw n at its ends only, where the branch looks worse than the other, and refined the
// best point of the other branch from then on.
TEST(Conditions, AGaussianProcessDoesNotRefineOneBranchForever) {
  const Space space =
      SpaceOf({"x=0.0..1.0", "model=a,b", "kind=plain,rich when model=b", "s=0.0..1.0 when model=b",
               "n=1..12 when kind=rich"});
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Study study({.space = space,
                 .algorithm = Algorithm::kGp,
                 .pruning = Pruning::kNone,
                 .seed = seed,
                 .trials = 100,
                 .window = 1});
    while (study.CanAsk()) {
      const Trial trial = study.Ask();
      const Point& p = trial.point;
      const double x = p[0] - 0.8, rich = p[3] - p[0] + 0.3;
      const double value = p[1] == 0   ? 0.3 + (p[0] - 0.2) * (p[0] - 0.2)
                           : p[2] == 0 ? 0.2 + 2 * x * x + (p[3] - 0.5) * (p[3] - 0.5)
                                       : 2 * x * x + rich * rich + 0.01 * (p[4] - 7) * (p[4] - 7);
      study.End(trial.number, {.value = value});
    }
    EXPECT_LT(*study.Best()->value, 0.1) << seed;
  }
}

TEST(Conditions, NoPointOfASmallSpaceIsTriedTwiceWhileOthersAreLeft) {
  const Space space =
      SpaceOf({"o=a,b,c", "n=1..6 when o=a", "k=x,y,z when o=b", "l=1,2,3 when k=z"});
  // 6 + (2 + 3) + 1 points.
  for (Algorithm algorithm : {Algorithm::kTpe, Algorithm::kGp}) {
    Study study({.space = space,
                 .algorithm = algorithm,
                 .pruning = Pruning::kNone,
                 .trials = 40,
                 .window = 1});
    std::set<Point> seen;
    while (study.CanAsk()) {
      const Trial trial = study.Ask();
      seen.insert(trial.point);
      study.End(trial.number, {.value = trial.point[0]});
    }
    EXPECT_EQ(seen.size(), 12u);
  }
}

TEST(Conditions, AStudyIsTheSameAfterItsTrialsWereRead) {
  for (Algorithm algorithm : {Algorithm::kTpe, Algorithm::kGp}) {
    const Settings settings{
        .space = Tree(), .algorithm = algorithm, .pruning = Pruning::kNone, .trials = 40};
    const auto finish = [&](Study study) {
      while (study.CanAsk()) {
        const Trial trial = study.Ask();
        study.End(trial.number, {.value = TreeLoss(settings.space, trial.point)});
      }
      return study.trials();
    };
    const std::vector<Trial> whole = finish(Study(settings));
    EXPECT_EQ(finish(Study(settings, {whole.begin(), whole.begin() + 23})), whole);
  }
}

TEST(Conditions, ImportanceJudgesAParameterByTheTrialsInWhichItIsActive) {
  const Settings settings{.space = SpaceOf({"o=a,b", "m=0.0..1.0 when o=a", "x=0.0..1.0"}),
                          .algorithm = Algorithm::kRandom};
  std::vector<Trial> trials;
  for (int i = 0; i < 80; ++i) {
    Trial trial{.number = i, .units = RandomPoint(settings, i), .state = State::kComplete};
    for (size_t p = 0; p < 3; ++p) {
      trial.point.push_back(trial.units[p] == kInactive
                                ? kInactive
                                : FromUnit(settings.space[p], trial.units[p]));
    }
    trial.value = trial.point[1] == kInactive ? 0.5 : trial.point[1];
    trials.push_back(trial);
  }
  const std::vector<double> shares = Importance(settings, trials);
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_GT(shares[1], 0.7);
  EXPECT_NEAR(shares[0] + shares[1] + shares[2], 1, 1e-9);
}

}  // namespace
}  // namespace sweep
