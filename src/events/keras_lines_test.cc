#include "events/keras_lines.h"

#include <cmath>

#include <gtest/gtest.h>

namespace events {
namespace {

using std::chrono::seconds;

// A line of the table: what it says, as a value.
struct Case {
  std::string_view line;
  LineProgress says;
};

void ExpectAll(const std::vector<Case>& cases) {
  for (const Case& expected : cases) {
    const auto line = ParseTrainingLine(expected.line);
    ASSERT_TRUE(line.has_value()) << expected.line;
    EXPECT_EQ(line->form, expected.says.form) << expected.line;
    EXPECT_EQ(line->epoch, expected.says.epoch) << expected.line;
    EXPECT_EQ(line->epochs, expected.says.epochs) << expected.line;
    EXPECT_EQ(line->step, expected.says.step) << expected.line;
    EXPECT_EQ(line->steps, expected.says.steps) << expected.line;
    EXPECT_EQ(line->steps_per_second, expected.says.steps_per_second) << expected.line;
    EXPECT_EQ(line->eta, expected.says.eta) << expected.line;
    EXPECT_EQ(line->metrics, expected.says.metrics) << expected.line;
    EXPECT_EQ(line->is_bar, expected.says.is_bar) << expected.line;
  }
}

LineProgress Epoch(int64_t epoch, std::optional<int64_t> epochs, std::vector<Metric> metrics = {}) {
  return {.form = LineForm::kEpoch, .epoch = epoch, .epochs = epochs, .metrics = metrics};
}

LineProgress Batch(int64_t step, std::optional<int64_t> steps, std::vector<Metric> metrics = {}) {
  return {.form = LineForm::kBatch, .step = step, .steps = steps, .metrics = metrics};
}

LineProgress Bar(int64_t step, std::optional<int64_t> steps, std::optional<base::Duration> eta,
                 std::vector<Metric> metrics = {}) {
  LineProgress line = Batch(step, steps, metrics);
  line.eta = eta;
  line.is_bar = true;
  return line;
}

LineProgress Step(int64_t step, std::optional<int64_t> steps, std::vector<Metric> metrics = {}) {
  return {.form = LineForm::kStep, .step = step, .steps = steps, .metrics = metrics};
}

TEST(ParseTrainingLine, UnderstandsKeras2) {
  ExpectAll({
      {"Epoch 3/5", Epoch(3, 5)},
      {"Epoch 3/5\n", Epoch(3, 5)},
      {"120/468 [=======>......................] - ETA: 3s - loss: 0.1 - accuracy: 0.97",
       Bar(120, 468, seconds(3), {{"loss", 0.1}, {"accuracy", 0.97}})},
      {"  1/468 [..............................] - ETA: 1:02:03 - loss: 2.3026e+00",
       Bar(1, 468, seconds(3723), {{"loss", 2.3026}})},
      {"468/468 [==============================] - 5s 11ms/step - loss: 0.1 - val_loss: 0.2",
       Batch(468, 468, {{"loss", 0.1}, {"val_loss", 0.2}})},
      {"468/468 - 5s - loss: 0.25 - accuracy: 0.5 - 5s/epoch - 11ms/step",
       Batch(468, 468, {{"loss", 0.25}, {"accuracy", 0.5}})},
      {"      7/Unknown - 3s 360ms/step - loss: 0.5", Bar(7, {}, {}, {{"loss", 0.5}})},
      {"313/313 [==============================] - 1s 2ms/step", Batch(313, 313)},
      {"1/8 [==>...........................] - ETA: 0s", Bar(1, 8, seconds(0))},
  });
}

TEST(ParseTrainingLine, UnderstandsKeras3) {
  ExpectAll({
      {"\x1b[1m120/468\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m━━\x1b[0m \x1b[1m3s\x1b[0m 11ms/step - "
       "accuracy: 0.9 - loss: 0.1",
       Bar(120, 468, seconds(3), {{"accuracy", 0.9}, {"loss", 0.1}})},
      {"\x1b[1m468/468\x1b[0m \x1b[32m━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m6s\x1b[0m 11ms/step - "
       "accuracy: 0.9 - loss: 0.1 - val_loss: 0.2",
       Batch(468, 468, {{"accuracy", 0.9}, {"loss", 0.1}, {"val_loss", 0.2}})},
      {"      7/Unknown \x1b[1m0s\x1b[0m 338ms/step - accuracy: 0.5 - loss: 0.25",
       Bar(7, {}, {}, {{"accuracy", 0.5}, {"loss", 0.25}})},
      {"8/8 - 0s - 17ms/step - accuracy: 0.5 - loss: 0.25 - learning_rate: 1e-03",
       Batch(8, 8, {{"accuracy", 0.5}, {"loss", 0.25}, {"learning_rate", 0.001}})},
      {"8/8 - 0s - 4ms/step", Batch(8, 8)},
  });
}

TEST(ParseTrainingLine, UnderstandsLoopsOfOnesOwn) {
  ExpectAll({
      {"120/468 - loss: 0.1234 - accuracy: 0.9612",
       Batch(120, 468, {{"loss", 0.1234}, {"accuracy", 0.9612}})},
      {"Epoch 2/3 - loss: 0.5", Epoch(2, 3, {{"loss", 0.5}})},
      {"Epoch 1, Loss: 0.13, Accuracy: 95.9, Test Loss: 0.06, Test Accuracy: 97.9",
       Epoch(1, {},
             {{"Loss", 0.13}, {"Accuracy", 95.9}, {"Test Loss", 0.06}, {"Test Accuracy", 97.9}})},
      {"Epoch 3/5 begins", Epoch(3, 5)},
      {"step 100/500 loss=0.3", Step(100, 500, {{"loss", 0.3}})},
      {"step 100/500", Step(100, 500)},
      {"Step 100: loss 0.3", Step(100, {}, {{"loss", 0.3}})},
      {"Step 100: loss = 0.3, accuracy = 95% (12.5 steps/sec)",
       Step(100, {}, {{"loss", 0.3}, {"accuracy", 95}})},
      {"step=100 | loss=-0.5 | time: 0.5 sec", Step(100, {}, {{"loss", -0.5}})},
      {"Training loss (for one batch) at step 200: 0.3", Step(200, {}, {{"loss", 0.3}})},
      {"INFO:root:Step 100: loss 0.3", Step(100, {}, {{"loss", 0.3}})},
  });
  LineProgress both = Step(100, 600, {{"Loss", 0.3}});
  both.epoch = 1;
  both.epochs = 5;
  ExpectAll({{"Epoch [1/5], Step [100/600], Loss: 0.3", both}});
}

TEST(ParseTrainingLine, UnderstandsEstimators) {
  LineProgress rate{.form = LineForm::kRate, .steps_per_second = 34.5};
  ExpectAll({
      {"INFO:tensorflow:loss = 0.3, step = 200 (0.5 sec)", Step(200, {}, {{"loss", 0.3}})},
      {"INFO:tensorflow:loss = 2.3, step = 0", Step(0, {}, {{"loss", 2.3}})},
      {"I0506 12:00:00.123456 1401 basic_session_run_hooks.py:260] loss = 0.3, step = 200",
       Step(200, {}, {{"loss", 0.3}})},
      {"INFO:tensorflow:global_step/sec: 34.5", rate},
      {"INFO:tensorflow:Saving dict for global step 900: accuracy = 0.9, global_step = 900, "
       "loss = 0.3",
       Step(900, {}, {{"accuracy", 0.9}, {"loss", 0.3}})},
  });
}

TEST(ParseTrainingLine, UnderstandsAResult) {
  const auto result = [](std::vector<Metric> metrics) {
    return LineProgress{.form = LineForm::kResult, .metrics = metrics};
  };
  ExpectAll({
      {"test accuracy: 0.9612", result({{"test accuracy", 0.9612}})},
      {"Test loss: 0.25, Test accuracy: 0.5",
       result({{"Test loss", 0.25}, {"Test accuracy", 0.5}})},
  });
}

TEST(ParseTrainingLine, ReadsTheLastStateOfALineThatRewritesItself) {
  ExpectAll({
      {"\r1/8 [==>...........................] - ETA: 2s - loss: 0.75\b\b\b\b\b\b\b\b\r8/8 "
       "[==============================] - 1s 34ms/step - loss: 0.5",
       Batch(8, 8, {{"loss", 0.5}})},
      {"\r1/8 [==>...........................] - ETA: 2s - loss: 0.75\b\b\b\r",
       Bar(1, 8, seconds(2), {{"loss", 0.75}})},
  });
}

// Found by fuzzing: the step that was refused had already been written down.
TEST(ParseTrainingLine, KeepsNothingOfAStepBeyondItsEnd) {
  ExpectAll({{"Epoch 1/5, step 7/3", Epoch(1, 5)}});
}

TEST(ParseTrainingLine, TakesNotANumberForANumber) {
  const auto line = ParseTrainingLine("12/468 - loss: nan - accuracy: inf");
  ASSERT_TRUE(line.has_value());
  EXPECT_TRUE(std::isnan(line->metrics[0].value));
  EXPECT_TRUE(std::isinf(line->metrics[1].value));
}

TEST(ParseTrainingLine, TakesNoOrdinaryTextForProgress) {
  for (const std::string_view line : {
           "",
           "2024/05/06 12:00",
           "2024/05 - loss: 0.5",
           "2024/05/06 12:00:00 INFO step done",
           "1/2 done",
           "1/2",
           "1/2 - 3s",
           "3/4 [...] left out",
           "3/4 [...]",
           "1/3 - port: 8080",
           "5/3 - loss: 0.5",
           "1/0 - loss: 0.5",
           "10.0.0.1/24 - loss: 0.5",
           "192.168.0.1:2222",
           "127.0.0.1 - - [06/May/2024] GET /loss: 3",
           "120/468 - loss: 0.1 and then some text",
           "120/468 - loss: high",
           "99999999999999999999/99999999999999999999 - loss: 0.5",
           "Step 1: install packages",
           "Step 1/5 : FROM debian:12",
           "Step 2: sleep 5",
           "Step 2: set loss=3 and go",
           "step 3",
           "steps 3/5 loss=0.5",
           "stepping 100/500",
           "Epoch",
           "Epoch time",
           "Epoch 1700000000",
           "Epoch 2: val_loss improved from inf to 0.3, saving model to model.keras",
           "Epoch 2: finished saving model to model.keras",
           "Epochs 3/5",
           "loss = 0.3",
           "width = 3, step = 4",
           "test port: 8080",
           "accuracy: 0.5",
           "Test accuracy: 0.5 is good",
           "loss = 0.3, step = nan",
           "INFO:tensorflow:Saving checkpoints for 200 into /m/model.ckpt.",
           "global_step/sec: fast",
           "INFO:",
           "I0506 no bracket",
           "Training loss went down at step two: 0.3",
           "━━━━━━━━",
           "\x1b[1m",
           "HTTP/1.1 200 OK",
           "Downloading data from https://storage.googleapis.com/mnist.npz",
       }) {
    EXPECT_FALSE(ParseTrainingLine(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace events
