#include "events/progress.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace events {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::Time kStart{seconds(1'800'000'000)};

std::string Bar(int step, int steps, const std::string& metrics = " - loss: 0.5") {
  return std::to_string(step) + "/" + std::to_string(steps) + " [=====>.....] - ETA: 3s" + metrics;
}

// Adds the lines, one a second.
ProgressTracker After(const std::vector<std::string>& lines) {
  ProgressTracker tracker;
  base::Time now = kStart;
  for (const std::string& line : lines) tracker.Add(line, now += seconds(1));
  return tracker;
}

Progress Now(const ProgressTracker& tracker) { return tracker.At(kStart + seconds(1000)); }

TEST(ProgressTracker, KnowsNothingAtFirst) { EXPECT_EQ(Now(ProgressTracker()), Progress()); }

TEST(ProgressTracker, CountsOverEpochsAndSteps) {
  const Progress progress = Now(After({"Epoch 2/4", Bar(50, 100)}));
  EXPECT_EQ(progress.percent, 37.5);
  EXPECT_EQ(progress.global_step, 150);
  EXPECT_EQ(progress.epoch, 2);
  EXPECT_EQ(progress.steps, 100);
}

TEST(ProgressTracker, CountsOverEpochsAloneOrStepsAlone) {
  EXPECT_EQ(Now(After({"Epoch 3/4"})).percent, 50);
  EXPECT_EQ(Now(After({"Epoch 3/4 - loss: 0.5"})).percent, 75);
  EXPECT_EQ(Now(After({"step 100/400 loss=0.5"})).percent, 25);
  EXPECT_EQ(Now(After({"120/480 - loss: 0.5"})).percent, 25);
  EXPECT_EQ(Now(After({"Step 100: loss 0.5"})).percent, std::nullopt);
  EXPECT_EQ(Now(After({"Step 100: loss 0.5"})).global_step, 100);
}

TEST(ProgressTracker, LearnsTheStepsOfAnOpenEndedEpochFromTheFirst) {
  const auto tracker = After({"Epoch 1/2", "6/Unknown - 3s 5ms/step - loss: 0.5", "Epoch 2/2",
                              "3/Unknown - 3s 5ms/step - loss: 0.5"});
  EXPECT_EQ(Now(tracker).percent, 75);
  EXPECT_EQ(Now(tracker).global_step, 9);
}

TEST(ProgressTracker, StartsAgainWithASecondFit) {
  const auto tracker = After({"Epoch 1/2", Bar(8, 8), "Epoch 2/2", Bar(8, 8), "Epoch 1/4"});
  EXPECT_EQ(Now(tracker).percent, 0);
}

TEST(ProgressTracker, IsNotLedAstrayByEvaluationPredictionAndDownloads) {
  auto tracker = After({"11490434/11490434 [==============================] - 0s 0us/step"});
  EXPECT_EQ(Now(tracker).percent, std::nullopt);
  tracker = After({"Epoch 1/2", Bar(8, 8, " - loss: 0.5"), Bar(1, 8, " - loss: 0.9"),
                   "8/8 - 0s - loss: 0.9 - 33ms/epoch - 4ms/step", Bar(3, 3, "")});
  EXPECT_EQ(Now(tracker).percent, 50);
  EXPECT_EQ(Now(tracker).metrics, (std::vector<Metric>{{"loss", 0.5}}));
  tracker = After({"Epoch 1/2", Bar(5, 10, " - loss: 0.5"), Bar(20, 20, " - loss: 0.9")});
  EXPECT_EQ(Now(tracker).percent, 25);
}

TEST(ProgressTracker, TakesTheValidationThatIsDrawnIntoTheLastBar) {
  const auto tracker =
      After({"Epoch 1/2", Bar(8, 8, " - loss: 0.5"), Bar(8, 8, " - loss: 0.4 - val_loss: 0.75")});
  EXPECT_EQ(Now(tracker).metrics, (std::vector<Metric>{{"loss", 0.4}, {"val_loss", 0.75}}));
}

TEST(ProgressTracker, ToldByTheClockHowFastItGoesAndHowLongItTakes) {
  ProgressTracker tracker;
  tracker.Add("Epoch 1/2", kStart);
  for (int step = 1; step <= 50; ++step) {
    tracker.Add(Bar(step, 100), kStart + milliseconds(100) * step);
  }
  const Progress progress = tracker.At(kStart + seconds(5));
  EXPECT_NEAR(*progress.steps_per_second, 10, 0.01);
  EXPECT_NEAR(std::chrono::duration<double>(*progress.eta).count(), 15, 0.5);
  EXPECT_NEAR(std::chrono::duration<double>(*tracker.At(kStart + seconds(9)).eta).count(), 11, 0.5);
  EXPECT_EQ(tracker.At(kStart + seconds(900)).eta, seconds(0));
}

TEST(ProgressTracker, FollowsAChangeOfSpeed) {
  ProgressTracker tracker;
  base::Time now = kStart;
  for (int step = 0; step < 100; ++step) tracker.Add(Bar(step, 1000), now += seconds(1));
  for (int step = 100; step < 600; ++step) tracker.Add(Bar(step, 1000), now += milliseconds(200));
  EXPECT_NEAR(*tracker.At(now).steps_per_second, 5, 0.1);
}

TEST(ProgressTracker, BelievesKerasUntilItHasMeasuredItself) {
  EXPECT_EQ(After({Bar(1, 100)}).At(kStart + seconds(2)).eta, seconds(2));
  EXPECT_EQ(After({"Epoch 1/5", Bar(1, 100)}).At(kStart + seconds(1)).global_step, 1);
}

TEST(ProgressTracker, TakesTheRateThatAnEstimatorTells) {
  const auto tracker = After({"INFO:tensorflow:loss = 0.5, step = 200 (0.5 sec)",
                              "INFO:tensorflow:global_step/sec: 34.5"});
  EXPECT_EQ(Now(tracker).steps_per_second, 34.5);
  EXPECT_EQ(Now(tracker).global_step, 200);
}

TEST(ProgressTracker, OneMetricInTwoSpellingsIsOne) {
  const auto tracker = After({"test accuracy: 0.95", "test_accuracy: 0.9612"});
  EXPECT_EQ(Now(tracker).metrics, (std::vector<Metric>{{"test accuracy", 0.9612}}));
}

TEST(ProgressTracker, KeepsTheResultThatAScriptPrintsAtItsEnd) {
  const auto tracker = After({"Epoch 1/1", "8/8 - loss: 0.5", "test accuracy: 0.9612"});
  EXPECT_EQ(Now(tracker).metrics, (std::vector<Metric>{{"loss", 0.5}, {"test accuracy", 0.9612}}));
  EXPECT_EQ(Now(tracker).percent, 100);
}

TEST(ProgressTracker, KnowsWhenTrainingLastGotFurther) {
  ProgressTracker tracker;
  tracker.Add(Bar(1, 8), kStart);
  tracker.Add(Bar(2, 8), kStart + seconds(1));
  tracker.Add(Bar(2, 8), kStart + seconds(60));
  tracker.Add("some other line", kStart + seconds(61));
  EXPECT_EQ(tracker.last_advance(), kStart + seconds(1));
}

TEST(ProgressTracker, StaysFiniteForNumbersOfAnySize) {
  const auto tracker =
      After({"Epoch 9999999/9999999", "9223372036854775806/9223372036854775807 - loss: 1",
             "9223372036854775807/9223372036854775807 - loss: 1e308"});
  const Progress progress = Now(tracker);
  EXPECT_LE(*progress.percent, 100);
  EXPECT_EQ(progress.global_step, std::nullopt);
}

// Output of Keras 2.15 and 3 as a pipe gets it: two fits with validation (verbose 1, then 2),
// evaluate and predict in both, a fit over a data set of unknown size, one that begins at epoch 2.
class RealKerasLog : public ::testing::TestWithParam<const char*> {};

TEST_P(RealKerasLog, LeadsToOneHundredPercentWithinEveryFit) {
  std::ifstream file(std::string(TESTDATA "/logs/") + GetParam());
  ASSERT_TRUE(file.is_open());
  ProgressTracker tracker;
  base::Time now = kStart;
  std::string section;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("--")) {
      EXPECT_TRUE(section.empty() || tracker.At(now).percent == 100) << section;
      section = line;
      continue;
    }
    tracker.Add(line, now += seconds(1));
    const Progress progress = tracker.At(now);
    EXPECT_LE(*progress.percent, 100);
    EXPECT_TRUE(progress.steps == std::nullopt || *progress.steps == 8 || *progress.steps == 6)
        << section;
  }
  const Progress end = tracker.At(now);
  EXPECT_EQ(end.epoch, 3);
  EXPECT_EQ(end.global_step, 24);
  EXPECT_EQ(end.metrics.size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(Versions, RealKerasLog, ::testing::Values("keras2.txt", "keras3.txt"));

}  // namespace
}  // namespace events
