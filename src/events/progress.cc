#include "events/progress.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace events {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kSmoothing = 15;  // seconds after which older speed weighs less than 1/e
// Bars are redrawn many times a second; shorter stretches measure the terminal, not the training.
constexpr double kLeastStretch = 0.25;
constexpr size_t kMaxMetrics = 64;
constexpr double kLongestEta = 10 * 365.25 * 86400;

// "test accuracy", "Test-Accuracy" and "test_accuracy" are one metric.
std::string Canonical(std::string_view name) {
  std::string out = base::Lower(name);
  std::ranges::replace_if(out, [](char c) { return c == ' ' || c == '-'; }, '_');
  return out;
}

}  // namespace

void ProgressTracker::Speed::Observe(double amount, base::Time seen) {
  if (!amount_ || amount < *amount_) {
    amount_ = amount;
    seen_ = seen;
    return;
  }
  const double stretch = Seconds(seen - seen_).count();
  if (stretch < kLeastStretch || amount == *amount_) return;
  const double speed = (amount - *amount_) / stretch;
  const double weight = per_second_ ? 1 - std::exp(-stretch / kSmoothing) : 1;
  per_second_ = per_second_.value_or(0) * (1 - weight) + speed * weight;
  amount_ = amount;
  seen_ = seen;
}

std::optional<LineProgress> ProgressTracker::Add(std::string_view text, base::Time seen) {
  std::optional<LineProgress> line = ParseTrainingLine(text);
  if (!line || !IsTraining(*line)) return line;
  if (line->form == LineForm::kRate) {
    step_speed_.Set(*line->steps_per_second);
    return line;
  }
  if (line->form == LineForm::kResult) {
    TakeMetrics(line->metrics);
    return line;
  }
  if (line->epoch) BeginEpoch(*line);
  if (line->step) {
    // Without epochs a count that starts again, or to another end, is another training.
    if (!epoch_ && ((step_ && *line->step < *step_) || (steps_ && line->steps != steps_))) {
      step_speed_.Reset();
      fraction_speed_.Reset();
    }
    step_ = line->step;
    if (line->steps || !epoch_) steps_ = line->steps;
    step_is_global_ = line->form == LineForm::kStep && !line->steps;
    if (steps_ && *step_ == *steps_ && epoch_) epoch_done_ = true;
  } else if (!line->metrics.empty()) {
    epoch_done_ = true;  // "Epoch 1, Loss: 0.13" is written at its end
  }
  epoch_eta_ = line->eta;
  TakeMetrics(line->metrics);
  Observe(seen);
  return line;
}

bool ProgressTracker::IsTraining(const LineProgress& line) const {
  if (line.form != LineForm::kBatch) return true;
  if (line.metrics.empty()) return false;  // predict() and downloads
  if (!epoch_) return true;
  if (!epoch_done_) {
    // Within an epoch, another total is that of an evaluation in between.
    if (!step_ || *step_ == 0) return true;
    return *line.step >= *step_ && (!steps_ || !line.steps || line.steps == steps_);
  }
  // Once an epoch has ended, a bar without a new one is evaluate()'s, unless it is the epoch's
  // own last bar drawn again with the validation behind it.
  return line.step == step_ && line.steps == steps_ &&
         std::ranges::any_of(line.metrics,
                             [](const Metric& metric) { return metric.name.starts_with("val_"); });
}

void ProgressTracker::BeginEpoch(const LineProgress& line) {
  const bool same_fit =
      epoch_ && *line.epoch >= *epoch_ && (!line.epochs || line.epochs == epochs_);
  if (!same_fit) {
    epochs_ = line.epochs;
    steps_.reset();
    step_.reset();
    fraction_speed_.Reset();
  } else if (*line.epoch == *epoch_) {
    return;  // told again, with its steps or its end
  } else if (!steps_ && step_ && !step_is_global_) {
    steps_ = step_;  // "6/Unknown" was the last of its epoch: now it is known
  }
  epoch_ = line.epoch;
  epoch_done_ = false;
  if (!step_is_global_ && step_) step_ = 0;
}

void ProgressTracker::TakeMetrics(const std::vector<Metric>& metrics) {
  for (const Metric& metric : metrics) {
    const auto known = std::ranges::find(metrics_, Canonical(metric.name),
                                         [](const Metric& one) { return Canonical(one.name); });
    if (known != metrics_.end()) {
      known->value = metric.value;
    } else if (metrics_.size() < kMaxMetrics) {
      metrics_.push_back(metric);
    }
  }
}

void ProgressTracker::Observe(base::Time seen) {
  const auto fraction = Fraction();
  const auto global_step = GlobalStep();
  if (fraction) fraction_speed_.Observe(*fraction, seen);
  if (global_step) step_speed_.Observe(static_cast<double>(*global_step), seen);
  if (fraction != last_fraction_ || global_step != last_global_step_) last_advance_ = seen;
  last_fraction_ = fraction;
  last_global_step_ = global_step;
  last_seen_ = seen;
}

std::optional<double> ProgressTracker::Fraction() const {
  double within = epoch_done_ ? 1 : 0;
  const bool counted = step_ && steps_ && *steps_ > 0 && !step_is_global_;
  if (counted && !epoch_done_) {
    within = static_cast<double>(*step_) / static_cast<double>(*steps_);
  }
  if (epoch_ && epochs_ && *epochs_ > 0) {
    const double before = static_cast<double>(std::max<int64_t>(*epoch_ - 1, 0));
    return std::min(1.0, (before + within) / static_cast<double>(*epochs_));
  }
  if (counted && !epoch_) return within;
  return std::nullopt;
}

std::optional<int64_t> ProgressTracker::GlobalStep() const {
  if (!step_ || step_is_global_ || !epoch_) return step_;
  int64_t total;
  if (!steps_) return *epoch_ <= 1 ? step_ : std::nullopt;
  if (__builtin_mul_overflow(std::max<int64_t>(*epoch_ - 1, 0), *steps_, &total) ||
      __builtin_add_overflow(total, *step_, &total)) {
    return std::nullopt;
  }
  return total;
}

Progress ProgressTracker::At(base::Time now) const {
  Progress progress{.epoch = epoch_,
                    .epochs = epochs_,
                    .step = step_,
                    .steps = steps_,
                    .global_step = GlobalStep(),
                    .steps_per_second = step_speed_.per_second(),
                    .metrics = metrics_};
  const auto fraction = Fraction();
  if (!fraction) return progress;
  progress.percent = *fraction * 100;

  std::optional<double> seconds;
  if (const auto speed = fraction_speed_.per_second(); speed && *speed > 0) {
    seconds = (1 - *fraction) / *speed;
  } else if (epoch_eta_ && (!epochs_ || epoch_ == epochs_)) {
    seconds = Seconds(*epoch_eta_).count();
  }
  if (*fraction >= 1) seconds = 0;
  if (seconds && *seconds < kLongestEta) {
    const double left = std::max(0.0, *seconds - Seconds(now - last_seen_).count());
    progress.eta = std::chrono::round<base::Duration>(Seconds(left));
  }
  return progress;
}

}  // namespace events
