#include "events/series.h"

#include <cmath>

#include <gtest/gtest.h>

namespace events {
namespace {

Point At(int64_t step, double value) { return {step, 1e9 + static_cast<double>(step), value}; }

std::vector<int64_t> StepsOf(const Series& series) {
  std::vector<int64_t> steps;
  for (const Point& point : series.Points()) steps.push_back(point.step);
  return steps;
}

TEST(Series, KeepsEveryPointOfAShortCurve) {
  Series series;
  for (int step = 0; step < 5; ++step) series.Add(1, At(step, step * 0.5));
  EXPECT_EQ(series.Points(),
            (std::vector<Point>{At(0, 0), At(1, 0.5), At(2, 1), At(3, 1.5), At(4, 2)}));
}

TEST(Series, StaysWithinItsBoundAndKeepsFirstAndLastOfALongCurve) {
  Series series;
  for (int step = 0; step < 1'000'000; ++step) {
    series.Add(1, At(step, std::sin(step)));
    if (step % 9973 != 0) continue;
    const std::vector<Point> points = series.Points();
    ASSERT_LE(points.size(), Series::kMaxPoints);
    ASSERT_EQ(points.front(), At(0, 0));
    ASSERT_EQ(points.back(), At(step, std::sin(step)));
  }
  EXPECT_GE(series.Points().size(), Series::kMaxPoints / 2 - 1);
  EXPECT_EQ(series.count(), 1'000'000);
}

TEST(Series, SpreadsThePointsItKeepsEvenly) {
  Series series;
  for (int step = 0; step < 100'000; ++step) series.Add(1, At(step, 0));
  const std::vector<int64_t> steps = StepsOf(series);
  const int64_t stride = steps[1] - steps[0];
  for (size_t i = 1; i + 1 < steps.size(); ++i) ASSERT_EQ(steps[i] - steps[i - 1], stride);
}

TEST(Series, KnowsLeastAndGreatestOfAllValuesNotOnlyOfThoseKept) {
  Series series;
  for (int step = 0; step < 100'000; ++step) {
    series.Add(1, At(step, step == 77'777 ? -5 : step == 33'333 ? 9 : 0));
  }
  EXPECT_EQ(series.least(), At(77'777, -5));
  EXPECT_EQ(series.greatest(), At(33'333, 9));
}

TEST(Series, ShowsNotANumberButDoesNotRankIt) {
  Series series;
  series.Add(1, At(0, NAN));
  EXPECT_EQ(series.least(), std::nullopt);
  series.Add(1, At(1, 3));
  series.Add(1, At(2, NAN));
  EXPECT_EQ(series.least(), At(1, 3));
  EXPECT_EQ(series.greatest(), At(1, 3));
  EXPECT_TRUE(std::isnan(series.latest()->value));
}

TEST(Series, ForgetsTheStepsThatARestartedJobWritesAgain) {
  Series series;
  for (int step = 0; step < 10; ++step) series.Add(1, At(step, -step));
  series.Add(2, At(6, 1));  // from the checkpoint of step 5
  series.Add(2, At(7, 2));
  EXPECT_EQ(StepsOf(series), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(series.latest(), At(7, 2));
  EXPECT_EQ(series.least(), At(5, -5));
  EXPECT_EQ(series.greatest(), At(7, 2));
}

TEST(Series, HearsNothingMoreFromAFileThatALaterOneOvertook) {
  Series series;
  series.Add(1, At(0, 1));
  series.Add(2, At(1, 1));
  EXPECT_FALSE(series.Add(1, At(2, 9)));
  EXPECT_EQ(StepsOf(series), (std::vector<int64_t>{0, 1}));
}

TEST(Series, JoinsALaterFileThatGoesOnWhereTheFirstEnded) {
  Series series;
  series.Add(1, At(0, 1));
  series.Add(1, At(1, 1));
  series.Add(2, At(2, 1));
  EXPECT_EQ(StepsOf(series), (std::vector<int64_t>{0, 1, 2}));
}

TEST(Series, TakesTheLastValueOfAStepWrittenTwice) {
  Series series;
  series.Add(1, At(4, 1));
  series.Add(1, At(4, 2));
  EXPECT_EQ(series.Points(), std::vector<Point>{At(4, 2)});
}

TEST(Series, BeginsAgainWhenTheSessionDoes) {
  Series series;
  for (int step = 0; step < 10; ++step) series.Add(1, At(step, 1));
  series.Restart(1, 3);
  EXPECT_EQ(StepsOf(series), (std::vector<int64_t>{0, 1, 2}));
  series.Restart(1, 0);
  EXPECT_EQ(series.latest(), std::nullopt);
  series.Add(2, At(8, 1));
  series.Restart(1, 0);  // said by a file that was overtaken
  EXPECT_EQ(StepsOf(series), (std::vector<int64_t>{8}));
}

TEST(Series, KeepsItsShapeWhenALongCurveIsCutAndGrowsAgain) {
  Series series;
  for (int attempt = 1; attempt <= 5; ++attempt) {
    for (int step = attempt * 1000; step < 50'000; ++step) series.Add(attempt, At(step, attempt));
  }
  const std::vector<Point> points = series.Points();
  EXPECT_LE(points.size(), Series::kMaxPoints);
  EXPECT_EQ(points.front(), At(1000, 1));
  EXPECT_EQ(points.back(), At(49'999, 5));
  for (size_t i = 1; i < points.size(); ++i) ASSERT_LT(points[i - 1].step, points[i].step);
}

}  // namespace
}  // namespace events
