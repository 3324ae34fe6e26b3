// The metric of a trial, out of what its script prints and writes anyway.
//
// A report is one value at one step. Reports come from log lines (events/keras_lines.h, and any
// line with "NAME=1.5" or "NAME: 1.5" in it) or from event files, where a metric is a tag or
// run/tag. A progress bar counts when it is full. A step that was reported already, by an earlier
// attempt of the job, is not reported again.
//
// A trial has one source of its metric. Which one must not depend on what is written first or on
// when it is read, so nothing is reported before Use() names it. Found() answers from the contents
// of a trial that has ended: the log if it has the name, else the first directory of event files in
// which exactly one series has it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "events/log_dir.h"

namespace cli {

// Where a trial's metric comes from.
struct MetricSource {
  int directory = -1;  // of event files, by its index; -1: the log
  std::string series;  // run/tag

  bool operator==(const MetricSource&) const = default;
};
// "log", "events 0 validation/epoch_loss"
std::string Text(const MetricSource& source);
std::optional<MetricSource> MetricSourceFrom(std::string_view text);

class TrialMetric {
 public:
  explicit TrialMetric(std::string name) : name_(std::move(name)) {}

  // Appends to the log.
  void FeedLog(std::string_view bytes);
  // Call after each Poll of the reader of directory `index`; it must outlive this object.
  void ReadEvents(size_t index, const events::LogDirReader& reader);

  // The source that the contents read so far name.
  std::optional<MetricSource> Found() const;
  // Sets the source. Call it again only if nothing came from the one before.
  void Use(const MetricSource& source);

  // The reports of the source since the last call.
  std::vector<double> Take();
  // The last value of the source.
  std::optional<double> last() const { return used_ ? LastOf(*used_) : std::nullopt; }
  // The last value seen, whatever will be the source.
  std::optional<double> glimpse() const {
    const auto source = used_ ? used_ : Found();
    return source ? LastOf(*source) : std::nullopt;
  }
  // Metrics that were seen, whatever their name.
  const std::set<std::string>& names() const { return names_; }
  // Names in event files that the name could mean, when there are several.
  const std::set<std::string>& meanings() const { return meanings_; }
  // A line in which a parser of arguments refuses one; empty: there was none.
  const std::string& refusal() const { return refusal_; }

 private:
  using Key = std::pair<int64_t, int64_t>;  // epoch, step
  struct Directory {
    const events::LogDirReader* reader = nullptr;
    std::set<std::string> meant;  // the series that the name could mean
  };

  void ReadLine(std::string_view line);
  const events::Series* SeriesOf(const MetricSource& source) const;
  std::optional<double> LastOf(const MetricSource& source) const;

  static constexpr size_t kMostNames = 100;
  // Of event files: beyond it a series is thinned, and what is left depends on when one looks.
  static constexpr size_t kMostEventReports = 1000;

  const std::string name_;
  std::optional<MetricSource> used_;
  std::string partial_;
  int64_t epoch_ = 0;
  std::optional<Key> last_key_;  // of the log
  std::vector<double> in_log_;   // the reports of the log
  std::vector<Directory> directories_;
  size_t taken_ = 0;                  // reports of the source
  std::optional<int64_t> last_step_;  // of those, if they come from event files
  std::set<std::string> names_, meanings_;
  std::string refusal_;
};

}  // namespace cli
