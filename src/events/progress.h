// How far a training is, from the lines of its log. Pure: the time is an argument.
//
//   ProgressTracker tracker;
//   tracker.Add(line, now);        // every line, or every rewrite of one
//   tracker.At(now).percent
//
// Percent counts over epochs and steps when both are known, over the one that is known otherwise;
// a second fit() starts again at 0. Bars of evaluate(), predict() and downloads are told from those
// of training: they come without an epoch of their own, or without metrics.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "events/keras_lines.h"

namespace events {

struct Progress {
  std::optional<double> percent;  // 0 to 100
  std::optional<int64_t> epoch;
  std::optional<int64_t> epochs;
  std::optional<int64_t> step;  // within the epoch, when there are epochs
  std::optional<int64_t> steps;
  std::optional<int64_t> global_step;
  std::optional<double> steps_per_second;  // smoothed over about 15 s
  std::optional<base::Duration> eta;       // of the whole training
  std::vector<Metric> metrics;             // the latest of each

  bool operator==(const Progress&) const = default;
};

class ProgressTracker {
 public:
  // What the line said, whether or not it moved the progress; nothing for any other line.
  std::optional<LineProgress> Add(std::string_view line, base::Time seen);
  Progress At(base::Time now) const;
  // When the training last got further: what a hang is judged by.
  std::optional<base::Time> last_advance() const { return last_advance_; }

 private:
  // How fast something grows, newer growth weighing more.
  class Speed {
   public:
    void Observe(double amount, base::Time seen);
    void Set(double per_second) { per_second_ = per_second; }
    void Reset() { *this = Speed(); }
    std::optional<double> per_second() const { return per_second_; }

   private:
    std::optional<double> per_second_;
    std::optional<double> amount_;
    base::Time seen_;
  };

  bool IsTraining(const LineProgress& line) const;
  void BeginEpoch(const LineProgress& line);
  void TakeMetrics(const std::vector<Metric>& metrics);
  void Observe(base::Time seen);
  std::optional<double> Fraction() const;
  std::optional<int64_t> GlobalStep() const;

  std::optional<int64_t> epoch_;
  std::optional<int64_t> epochs_;
  std::optional<int64_t> step_;
  std::optional<int64_t> steps_;
  bool epoch_done_ = false;
  bool step_is_global_ = false;
  std::vector<Metric> metrics_;
  Speed step_speed_;
  Speed fraction_speed_;
  std::optional<double> last_fraction_;
  std::optional<int64_t> last_global_step_;
  std::optional<base::Duration> epoch_eta_;  // as Keras said at last_seen_
  base::Time last_seen_;
  std::optional<base::Time> last_advance_;
};

}  // namespace events
