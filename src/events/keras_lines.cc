#include "events/keras_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "base/strings.h"
#include "events/plain_text.h"

namespace events {
namespace {

constexpr size_t kMaxLine = 4096;  // longer lines are data, not progress
constexpr size_t kMaxMetrics = 64;
constexpr int64_t kMaxEpoch = 10'000'000;     // more is the other epoch, of 1970
constexpr std::string_view kHeavyLine = "━";  // U+2501, of which Keras 3 draws its bar

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Reads a line from left to right. Each function consumes what it names, or nothing.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }
  bool AtEnd() const { return rest_.empty(); }
  char Peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  bool Take(std::string_view literal) {
    if (!rest_.starts_with(literal)) return false;
    rest_.remove_prefix(literal.size());
    return true;
  }
  size_t TakeAnyOf(std::string_view characters) {
    const size_t count = std::min(rest_.find_first_not_of(characters), rest_.size());
    rest_.remove_prefix(count);
    return count;
  }
  std::optional<int64_t> TakeInt() {
    size_t digits = 0;
    while (digits < rest_.size() && IsDigit(rest_[digits])) ++digits;
    const auto value = base::ParseInt(rest_.substr(0, digits));
    if (value) rest_.remove_prefix(digits);
    return value;
  }
  // A decimal number, also nan and inf.
  std::optional<double> TakeNumber() {
    double value = 0;
    const char* begin = rest_.data();
    const char* end = begin + rest_.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(stop - begin));
    return value;
  }
  // Up to the literal, which is consumed too; the whole rest when it does not come.
  std::string_view TakeUntil(std::string_view literal) {
    const size_t at = rest_.find(literal);
    const std::string_view before = rest_.substr(0, at);
    rest_.remove_prefix(at == rest_.npos ? rest_.size() : at + literal.size());
    return before;
  }

 private:
  std::string_view rest_;
};

// Names that hardly occur but in training. "x: 3" proves nothing, "val_loss: 3" does.
bool BelongsToTraining(std::string_view name) {
  static constexpr std::array kWords = {
      "loss",    "acc", "learning",  "lr",     "mae",  "mse",   "rmse",    "auc",    "reward",
      "perplex", "f1",  "precision", "recall", "grad", "error", "entropy", "metric", "return"};
  const std::string lower = base::Lower(name);
  return std::ranges::any_of(kWords, [&](const char* word) { return lower.contains(word); });
}

bool ProvesTraining(const std::vector<Metric>& metrics) {
  return std::ranges::any_of(metrics,
                             [](const Metric& metric) { return BelongsToTraining(metric.name); });
}

void Append(std::string_view name, double value, std::vector<Metric>* metrics) {
  if (metrics->size() < kMaxMetrics) metrics->push_back({std::string(name), value});
}

// "loss", "Test Loss", "val/top-5": letters, digits and _ . / - @, words set apart by one space.
// Ends before ':' or '=', or after a single word.
std::string_view TakeName(Cursor* cursor) {
  const std::string_view text = cursor->rest();
  if (!IsLetter(cursor->Peek())) return {};
  size_t end = 0;
  size_t first_word = std::string_view::npos;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c == ' ') {
      if (first_word == text.npos) first_word = end;
      if (end + 1 == text.size() || !IsLetter(text[end + 1])) break;
    } else if (!IsLetter(c) && !IsDigit(c) && !std::string_view("_./-@").contains(c)) {
      break;
    }
  }
  size_t after = end;
  while (after < text.size() && text[after] == ' ') ++after;
  const bool assigned = after < text.size() && (text[after] == ':' || text[after] == '=');
  if (!assigned) end = std::min(end, first_word);
  const std::string_view name = text.substr(0, end);
  cursor->Take(name);
  return name;
}

// "0.5 sec", "34 steps/s": a measure, not a metric.
bool TakeUnit(Cursor* cursor) {
  static constexpr std::array kUnits = {"s", "ms", "us", "sec", "secs", "seconds", "min", "h"};
  Cursor ahead = *cursor;
  ahead.TakeAnyOf(" ");
  size_t length = ahead.rest().find_first_of(" ,;|)");
  const std::string_view word = ahead.rest().substr(0, length);
  if (word.empty()) return false;
  if (std::ranges::find(kUnits, word) == kUnits.end() &&
      !(IsLetter(word[0]) && word.contains("/"))) {
    return false;
  }
  ahead.Take(word);
  *cursor = ahead;
  return true;
}

// "loss: 0.3, Test Accuracy = 95% | lr 1e-4 (0.5 sec)" and nothing else up to the end.
bool TakePairs(Cursor* cursor, std::vector<Metric>* metrics) {
  while (true) {
    cursor->TakeAnyOf(" ,;|-:");
    if (cursor->AtEnd()) return true;
    if (cursor->Take("(")) {
      cursor->TakeUntil(")");
      continue;
    }
    const std::string_view name = TakeName(cursor);
    if (name.empty() || cursor->TakeAnyOf(" :=") == 0) return false;
    const auto value = cursor->TakeNumber();
    if (!value) return false;
    cursor->Take("%");
    if (!TakeUnit(cursor)) Append(name, *value, metrics);
    if (!cursor->AtEnd() && !std::string_view(" ,;|)").contains(cursor->Peek())) return false;
  }
}

// "3", "3/5", "[3/5]". False when neither or when it counts beyond its end.
bool TakeCount(Cursor* cursor, std::optional<int64_t>* count, std::optional<int64_t>* total) {
  const bool bracket = cursor->Take("[");
  *count = cursor->TakeInt();
  if (!*count) return false;
  if (cursor->Take("/")) {
    *total = cursor->TakeInt();
    if (!*total || **total < 1 || **count > **total) return false;
  }
  return bracket ? cursor->Take("]") : true;
}

// "3s", "1:23", "1:02:03" (as Keras' Progbar writes times).
std::optional<base::Duration> TakeTime(Cursor* cursor) {
  Cursor ahead = *cursor;
  int64_t seconds = 0;
  for (int parts = 0;; ++parts) {
    const auto part = ahead.TakeInt();
    if (!part || *part > 10'000'000 || parts == 3) return std::nullopt;
    seconds = seconds * 60 + *part;
    if (ahead.Take(":")) continue;
    if (parts == 0 && !ahead.Take("s")) return std::nullopt;
    break;
  }
  if (!ahead.AtEnd() && ahead.Peek() != ' ') return std::nullopt;
  *cursor = ahead;
  return std::chrono::seconds(seconds);
}

// What stands between two " - " of a Keras line: times or one metric.
struct Segment {
  std::optional<base::Duration> eta;   // "ETA: 3s"
  std::optional<base::Duration> time;  // "3s": to come or past, by what stands around
  bool per_step = false;               // "11ms/step"
  std::optional<Metric> metric;
  bool known = true;
};

Segment ParseSegment(std::string_view text) {
  Segment segment;
  Cursor cursor(text);
  if (cursor.Take("ETA: ")) {
    segment.eta = TakeTime(&cursor);
    segment.known = segment.eta.has_value();
    return segment;
  }
  if (IsDigit(cursor.Peek())) {
    segment.time = TakeTime(&cursor);
    cursor.TakeAnyOf(" ");
    const std::string_view pace = cursor.rest();
    segment.per_step = pace.ends_with("s/step");
    segment.known = pace.empty() || segment.per_step || pace.ends_with("s/epoch");
    return segment;
  }
  const std::string_view name = cursor.TakeUntil(": ");
  const auto value = cursor.TakeNumber();
  segment.known = value && cursor.AtEnd() && !name.empty() && IsLetter(name[0]);
  if (segment.known) segment.metric = {std::string(name), *value};
  return segment;
}

// "[=====>......]" of Keras 2, "━━━━━" of Keras 3.
bool TakeBar(Cursor* cursor) {
  Cursor ahead = *cursor;
  if (ahead.Take("[")) {
    // Its narrowest sensible width; "[...]" is an omission.
    if (ahead.TakeAnyOf("=>.") < 5 || !ahead.Take("]")) return false;
    if (!ahead.AtEnd() && !ahead.rest().starts_with(" - ")) return false;
  } else {
    if (!ahead.Take(kHeavyLine)) return false;
    while (ahead.Take(kHeavyLine)) {
    }
  }
  *cursor = ahead;
  return true;
}

std::optional<LineProgress> ParseBatchLine(std::string_view text) {
  LineProgress line{.form = LineForm::kBatch};
  Cursor cursor(text);
  line.step = cursor.TakeInt();
  if (!line.step || !cursor.Take("/")) return std::nullopt;
  const bool open_ended = cursor.Take("Unknown");
  if (!open_ended) {
    line.steps = cursor.TakeInt();
    if (!line.steps || *line.steps < 1 || *line.step > *line.steps) return std::nullopt;
  }
  if (cursor.TakeAnyOf(" ") == 0) return std::nullopt;
  const bool drawn = TakeBar(&cursor);
  cursor.TakeAnyOf(" ");
  cursor.Take("- ");
  const bool on_its_way = open_ended || *line.step < *line.steps;

  bool per_step = false;
  while (!cursor.AtEnd()) {
    Segment segment = ParseSegment(base::Trim(cursor.TakeUntil(" - ")));
    if (!segment.known && !drawn) return std::nullopt;
    per_step |= segment.per_step;
    if (segment.eta) line.eta = segment.eta;
    // Keras 3 writes the time to come without a word while the bar is on its way.
    if (segment.time && drawn && on_its_way && !line.eta) line.eta = segment.time;
    if (segment.metric) Append(segment.metric->name, segment.metric->value, &line.metrics);
  }
  if (!drawn && !per_step && !ProvesTraining(line.metrics)) return std::nullopt;
  line.is_bar = on_its_way && (drawn || open_ended);
  return line;
}

// "step 100/500 loss=0.3" from "step" on; an epoch may have been told before.
bool TakeStep(Cursor* cursor, LineProgress* line) {
  Cursor ahead = *cursor;
  const bool named = ahead.Take("step") || ahead.Take("Step") || ahead.Take("STEP") ||
                     ahead.Take("global_step") || ahead.Take("Global step") ||
                     ahead.Take("iteration") || ahead.Take("Iteration") || ahead.Take("iter");
  if (!named || ahead.TakeAnyOf(" :=#") > 3) return false;
  std::optional<int64_t> step;
  std::optional<int64_t> steps;
  if (!TakeCount(&ahead, &step, &steps)) return false;
  if (!ahead.AtEnd() && !std::string_view(" ,:;|-]").contains(ahead.Peek())) return false;
  line->form = LineForm::kStep;
  line->step = step;
  line->steps = steps;
  *cursor = ahead;
  return true;
}

std::optional<LineProgress> ParseEpochLine(std::string_view text) {
  LineProgress line{.form = LineForm::kEpoch};
  Cursor cursor(text);
  if (!cursor.Take("Epoch") && !cursor.Take("epoch") && !cursor.Take("EPOCH")) return std::nullopt;
  if (cursor.TakeAnyOf(" :=#") == 0 || !TakeCount(&cursor, &line.epoch, &line.epochs)) {
    return std::nullopt;
  }
  if (*line.epoch > kMaxEpoch) return std::nullopt;
  if (cursor.AtEnd()) return line;
  if (cursor.TakeAnyOf(" ,:;|-") == 0) return std::nullopt;
  TakeStep(&cursor, &line);
  if (!TakePairs(&cursor, &line.metrics)) {
    line.metrics.clear();
    // "Epoch 3/5 begins" still counts; "Epoch 2: saving model to x" has told nothing new.
    if (!line.epochs || line.step) return std::nullopt;
  }
  return line;
}

std::optional<LineProgress> ParseStepLine(std::string_view text) {
  LineProgress line{.form = LineForm::kStep};
  Cursor cursor(text);
  if (!TakeStep(&cursor, &line)) return std::nullopt;
  if (cursor.AtEnd()) return line.steps ? std::optional(line) : std::nullopt;
  if (!TakePairs(&cursor, &line.metrics) || !ProvesTraining(line.metrics)) return std::nullopt;
  return line;
}

// "Training loss (for one batch) at step 200: 0.3", of the Keras guide to own loops.
std::optional<LineProgress> ParseLossAtStep(std::string_view text) {
  LineProgress line{.form = LineForm::kStep};
  Cursor cursor(text);
  if (!cursor.Take("Training loss")) return std::nullopt;
  cursor.TakeUntil("at step ");
  line.step = cursor.TakeInt();
  if (!line.step || !cursor.Take(": ")) return std::nullopt;
  const auto loss = cursor.TakeNumber();
  if (!loss || !cursor.AtEnd()) return std::nullopt;
  line.metrics = {{"loss", *loss}};
  return line;
}

std::optional<LineProgress> ParseEstimatorLine(std::string_view text) {
  LineProgress line{.form = LineForm::kStep};
  Cursor cursor(text);
  if (cursor.Take("global_step/sec: ")) {
    line.form = LineForm::kRate;
    line.steps_per_second = cursor.TakeNumber();
    if (!line.steps_per_second || !cursor.AtEnd()) return std::nullopt;
    return line;
  }
  if (cursor.Take("Saving dict for global step ")) {
    cursor.TakeUntil(": ");
  }
  if (!TakePairs(&cursor, &line.metrics)) return std::nullopt;
  const auto is_step = [](const Metric& m) { return m.name == "step" || m.name == "global_step"; };
  const auto step = std::ranges::find_if(line.metrics, is_step);
  if (step == line.metrics.end() || !(step->value >= 0 && step->value < 9e15)) return std::nullopt;
  line.step = static_cast<int64_t>(step->value);
  std::erase_if(line.metrics, is_step);
  if (!ProvesTraining(line.metrics)) return std::nullopt;
  return line;
}

// "test accuracy: 0.9612": what many scripts print at their end.
std::optional<LineProgress> ParseResultLine(std::string_view text) {
  static constexpr std::array kOf = {"test", "val", "eval", "final"};
  LineProgress line{.form = LineForm::kResult};
  Cursor cursor(text);
  if (!TakePairs(&cursor, &line.metrics) || line.metrics.empty()) return std::nullopt;
  for (const Metric& metric : line.metrics) {
    const std::string lower = base::Lower(metric.name);
    const bool result =
        std::ranges::any_of(kOf, [&](const char* of) { return lower.starts_with(of); });
    if (!result || !BelongsToTraining(lower)) return std::nullopt;
  }
  return line;
}

// "INFO:tensorflow:", and absl's "I0506 12:00:00.123456 140 hooks.py:260] ".
std::string_view WithoutLogPrefix(std::string_view text) {
  for (const std::string_view level : {"INFO:", "WARNING:", "DEBUG:"}) {
    if (!text.starts_with(level)) continue;
    const size_t colon = text.find(':', level.size());
    if (colon < 64) return base::Trim(text.substr(colon + 1));
  }
  if (text.size() > 5 && std::string_view("IWE").contains(text[0]) && text[5] == ' ' &&
      std::ranges::all_of(text.substr(1, 4), IsDigit)) {
    const size_t bracket = text.find("] ");
    if (bracket < 128) return base::Trim(text.substr(bracket + 2));
  }
  return text;
}

}  // namespace

std::optional<LineProgress> ParseTrainingLine(std::string_view raw) {
  const std::string plain = StripAnsi(CollapseCarriageReturns(raw));
  if (plain.size() > kMaxLine) return std::nullopt;
  const std::string_view text = WithoutLogPrefix(base::Trim(plain));
  if (text.empty()) return std::nullopt;
  if (IsDigit(text[0])) return ParseBatchLine(text);
  for (const auto parse :
       {ParseEpochLine, ParseStepLine, ParseLossAtStep, ParseEstimatorLine, ParseResultLine}) {
    if (auto line = parse(text)) return line;
  }
  return std::nullopt;
}

}  // namespace events
