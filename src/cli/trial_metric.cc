#include "cli/trial_metric.h"

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/result.h"
#include "base/strings.h"
#include "events/keras_lines.h"
#include "events/plain_text.h"

namespace cli {
namespace {

constexpr size_t kMostLine = 64 << 10;

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '/' || c == '.' || c == '-';
}

// The number after "NAME=", "NAME: " or "NAME = " in a line.
std::optional<double> ValueIn(std::string_view line, std::string_view name) {
  for (size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
    if (at > 0 && IsWord(line[at - 1])) continue;
    std::string_view rest = line.substr(at + name.size());
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    if (!rest.starts_with('=') && !rest.starts_with(':')) continue;
    rest.remove_prefix(1);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    double value = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), value).ec == std::errc())
      return value;
  }
  return std::nullopt;
}

std::string FullName(const std::string& run, const std::string& tag) {
  return run == "." ? tag : run + "/" + tag;
}

// How argparse, absl and click say it.
bool IsRefusal(std::string_view line) {
  static constexpr std::array<std::string_view, 5> kSigns = {
      "unrecognized arguments:", "Unknown command line flag", "no such option:", "No such option",
      "unrecognised arguments:"};
  for (std::string_view sign : kSigns) {
    if (line.find(sign) != line.npos) return true;
  }
  return false;
}

}  // namespace

std::string Text(const MetricSource& source) {
  if (source.directory < 0) return "log";
  return fmt::format("events {} {}", source.directory, source.series);
}

std::optional<MetricSource> MetricSourceFrom(std::string_view text) {
  if (text == "log") return MetricSource{};
  if (!text.starts_with("events ")) return std::nullopt;
  text.remove_prefix(7);
  const size_t space = text.find(' ');
  if (space == text.npos) return std::nullopt;
  const auto index = base::ParseInt(text.substr(0, space));
  if (!index || *index < 0 || *index > 9) return std::nullopt;
  return MetricSource{static_cast<int>(*index), std::string(text.substr(space + 1))};
}

void TrialMetric::ReadLine(std::string_view line) {
  if (refusal_.empty() && IsRefusal(line)) refusal_ = base::OneLine(base::Trim(line), 200);
  const auto progress = events::ParseTrainingLine(line);
  std::optional<double> value;
  std::optional<Key> key;
  if (progress) {
    if (progress->epoch) epoch_ = *progress->epoch;
    if (progress->is_bar) return;
    for (const events::Metric& metric : progress->metrics) {
      if (names_.size() < kMostNames) names_.insert(metric.name);
      if (metric.name == name_) value = metric.value;
    }
    if (progress->form != events::LineForm::kResult) key = {epoch_, progress->step.value_or(0)};
  }
  if (!value) {
    value = ValueIn(events::StripAnsi(events::CollapseCarriageReturns(line)), name_);
    if (!progress) key.reset();
  }
  if (!value) return;
  names_.insert(name_);
  if (key && last_key_ && *key <= *last_key_) return;
  if (key) last_key_ = key;
  in_log_.push_back(*value);
}

void TrialMetric::FeedLog(std::string_view bytes) {
  partial_ += bytes;
  size_t begin = 0;
  for (size_t end; (end = partial_.find('\n', begin)) != partial_.npos; begin = end + 1) {
    ReadLine(std::string_view(partial_).substr(begin, end - begin));
  }
  partial_.erase(0, begin);
  if (partial_.size() > kMostLine) partial_.clear();
}

void TrialMetric::ReadEvents(size_t index, const events::LogDirReader& reader) {
  std::set<std::string> meant;
  for (const auto& [run, series] : reader.runs()) {
    for (const auto& [tag, values] : series) {
      if (!values.latest()) continue;
      const std::string full = FullName(run, tag);
      if (names_.size() < kMostNames) names_.insert(full);
      if (full == name_ || tag == name_) meant.insert(full);
    }
  }
  if (meant.contains(name_)) meant = {name_};
  if (!meant.empty()) meanings_ = meant;
  if (directories_.size() <= index) directories_.resize(index + 1);
  directories_[index] = {&reader, std::move(meant)};
}

std::optional<MetricSource> TrialMetric::Found() const {
  if (!in_log_.empty()) return MetricSource{};
  for (size_t i = 0; i < directories_.size(); ++i) {
    const std::set<std::string>& meant = directories_[i].meant;
    if (meant.size() == 1) return MetricSource{static_cast<int>(i), *meant.begin()};
  }
  return std::nullopt;
}

void TrialMetric::Use(const MetricSource& source) {
  CHECK(!used_ || *used_ == source || taken_ == 0);
  used_ = source;
}

const events::Series* TrialMetric::SeriesOf(const MetricSource& source) const {
  const auto index = static_cast<size_t>(source.directory);
  if (source.directory < 0 || index >= directories_.size()) return nullptr;
  if (!directories_[index].reader) return nullptr;
  for (const auto& [run, series] : directories_[index].reader->runs()) {
    for (const auto& [tag, values] : series) {
      if (values.latest() && FullName(run, tag) == source.series) return &values;
    }
  }
  return nullptr;
}

std::optional<double> TrialMetric::LastOf(const MetricSource& source) const {
  if (source.directory < 0) {
    return in_log_.empty() ? std::nullopt : std::optional(in_log_.back());
  }
  const events::Series* series = SeriesOf(source);
  return series ? std::optional(series->latest()->value) : std::nullopt;
}

std::vector<double> TrialMetric::Take() {
  std::vector<double> fresh;
  if (!used_) return fresh;
  if (used_->directory < 0) {
    fresh.assign(in_log_.begin() + static_cast<ptrdiff_t>(taken_), in_log_.end());
  } else if (const events::Series* series = SeriesOf(*used_)) {
    for (const events::Point& point : series->Points()) {
      if (last_step_ && point.step <= *last_step_) continue;
      if (taken_ + fresh.size() >= kMostEventReports) break;
      last_step_ = point.step;
      fresh.push_back(point.value);
    }
  }
  taken_ += fresh.size();
  return fresh;
}

}  // namespace cli
