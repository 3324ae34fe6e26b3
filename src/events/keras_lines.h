// What a line of a training log says about progress. Pure.
//
// The lines understood are those that training scripts write without being asked to:
//
//   Keras 2     Epoch 3/5
//               120/468 [=====>......] - ETA: 3s - loss: 0.1 - accuracy: 0.97
//               468/468 - 5s - loss: 0.1 - accuracy: 0.97 - 5s/epoch - 11ms/step
//   Keras 3     120/468 ━━━━━━━━━━━━━━━ 3s 11ms/step - accuracy: 0.97 - loss: 0.1
//   own loops   120/468 - loss: 0.1234 - accuracy: 0.9612
//               Epoch 1, Loss: 0.13, Accuracy: 95.9
//               Epoch [1/5], Step [100/600], Loss: 0.3
//               step 100/500 loss=0.3        Step 100: loss 0.3
//               Training loss (for one batch) at step 200: 0.3
//               Test accuracy: 0.9612
//   Estimator   INFO:tensorflow:loss = 0.3, step = 200 (0.5 sec)
//               INFO:tensorflow:global_step/sec: 34.5
//               INFO:tensorflow:Saving dict for global step 900: accuracy = 0.9, loss = 0.3
//
// It is conservative. Numbers alone prove nothing ("1/2 done", "2024/05/06", "Step 1: install"):
// beside them there must be a progress bar, a time per step, or a metric whose name belongs to
// training; and where there is no bar, nothing else may stand in the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace events {

struct Metric {
  std::string name;
  double value = 0;

  bool operator==(const Metric&) const = default;
};

enum class LineForm {
  kEpoch,   // speaks of an epoch only
  kBatch,   // "step/steps" of Keras and its imitators: steps of this epoch
  kStep,    // says "step"
  kRate,    // a step rate only
  kResult,  // metrics of an evaluation, at no step
};

struct LineProgress {
  LineForm form = LineForm::kEpoch;
  std::optional<int64_t> epoch;   // from 1
  std::optional<int64_t> epochs;  // how many there will be
  std::optional<int64_t> step;    // done
  std::optional<int64_t> steps;
  std::optional<double> steps_per_second;
  std::optional<base::Duration> eta;  // of this epoch, as Keras says it
  std::vector<Metric> metrics;
  bool is_bar = false;  // a progress bar on its way: the next line takes its place

  bool operator==(const LineProgress&) const = default;
};

// The line may be raw: with colours, carriage returns, backspaces, a logging prefix. Nothing when
// it does not speak of progress.
std::optional<LineProgress> ParseTrainingLine(std::string_view line);

}  // namespace events
