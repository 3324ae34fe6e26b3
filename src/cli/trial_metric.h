// The metric of a trial, out of what its script prints and writes anyway.
//
// A report is one value at one step. They come from log lines (events/keras_lines.h, and any line
// with "NAME=1.5" or "NAME: 1.5" in it) or, where the log has none of that name, from event
// files, where a metric is a tag or run/tag. A progress bar counts when it is full. A step that was
// reported already, by an earlier attempt of the job, is not reported again.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "events/log_dir.h"

namespace cli {

class TrialMetric {
 public:
  explicit TrialMetric(std::string name) : name_(std::move(name)) {}

  // What the log has grown by.
  void FeedLog(std::string_view bytes);
  // Of several readers, the first that has the name counts.
  void ReadEvents(const events::LogDirReader& reader);

  // The reports since the last time.
  std::vector<double> Take() { return std::exchange(fresh_, {}); }
  std::optional<double> last() const { return last_; }
  // Metrics that were seen, whatever their name.
  const std::set<std::string>& names() const { return names_; }
  // Names in event files that the name could mean, when there are several.
  const std::set<std::string>& meanings() const { return meanings_; }
  // A line in which a parser of arguments refuses one; empty: there was none.
  const std::string& refusal() const { return refusal_; }

 private:
  using Key = std::pair<int64_t, int64_t>;  // epoch, step

  void ReadLine(std::string_view line);
  void Add(std::optional<Key> key, double value);

  static constexpr size_t kMostNames = 100;
  // Of event files: beyond it a series is thinned, and what is left depends on when one looks.
  static constexpr size_t kMostEventReports = 1000;

  const std::string name_;
  std::string partial_;
  int64_t epoch_ = 0;
  std::optional<Key> last_key_;
  bool in_log_ = false;
  const events::LogDirReader* source_ = nullptr;  // by which it is known alone
  size_t event_reports_ = 0;
  std::vector<double> fresh_;
  std::optional<double> last_;
  std::set<std::string> names_, meanings_;
  std::string refusal_;
};

}  // namespace cli
