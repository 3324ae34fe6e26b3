#include "cli/trial_metric.h"

#include <array>
#include <charconv>

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

void TrialMetric::Add(std::optional<Key> key, double value) {
  if (key && last_key_ && *key <= *last_key_) return;
  if (key) last_key_ = key;
  last_ = value;
  fresh_.push_back(value);
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
  in_log_ = true;
  names_.insert(name_);
  Add(key, *value);
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

void TrialMetric::ReadEvents(const events::LogDirReader& reader) {
  std::set<std::string> meant;
  const events::Series* found = nullptr;
  for (const auto& [run, series] : reader.runs()) {
    for (const auto& [tag, values] : series) {
      if (!values.latest()) continue;
      const std::string full = run == "." ? tag : run + "/" + tag;
      if (names_.size() < kMostNames) names_.insert(full);
      if (full == name_) {
        meant = {full};
        found = &values;
        break;
      }
      if (tag == name_ && !meant.contains(name_)) {
        meant.insert(full);
        found = &values;
      }
    }
    if (meant.contains(name_)) break;
  }
  if (!meant.empty()) meanings_ = meant;
  if (in_log_ || meant.size() != 1 || (source_ && source_ != &reader)) return;
  source_ = &reader;
  for (const events::Point& point : found->Points()) {
    if (last_key_ && Key{0, point.step} <= *last_key_) continue;
    if (event_reports_ >= kMostEventReports) break;
    ++event_reports_;
    Add(Key{0, point.step}, point.value);
  }
  last_ = found->latest()->value;
}

}  // namespace cli
