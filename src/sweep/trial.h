// What a sweep is told to do, and what its trials have come to. Plain data.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweep/space.h"

namespace sweep {

enum class Algorithm { kGrid, kRandom, kTpe, kGp };
enum class Pruning { kNone, kAsha, kMedian };

struct Settings {
  Space space;
  Algorithm algorithm = Algorithm::kTpe;
  Pruning pruning = Pruning::kAsha;
  bool maximize = false;
  uint64_t seed = 0;
  int trials = 20;
  // The suggestion for trial n knows the results of trials up to n - window, and of those in
  // between only that they were asked for. So up to `window` slots change nothing.
  int window = 8;
  bool async = false;  // it knows whatever is known instead
  int reduction = 3;   // of ASHA: one in so many goes on

  bool operator==(const Settings&) const = default;
};

enum class State { kRunning, kComplete, kPruned, kFailed };
std::string_view Name(State state);  // "complete"

struct Trial {
  int number = 0;
  Point point;
  std::vector<double> units;  // the same in [0, 1], as searchers see it; Study fills it in
  State state = State::kRunning;
  std::optional<double> value;  // of the metric, at the end or where it was pruned
  int64_t reports = 0;          // how often the metric was reported, up to there
  // The metric at the reports that are judged (prune.h), counted from 1.
  std::map<int64_t, double> rungs;
  std::string reason;  // why it failed or was pruned

  bool operator==(const Trial&) const = default;
};

inline bool IsOver(const Trial& trial) { return trial.state != State::kRunning; }

// The value as something to minimize. A training that diverged is never good: infinities of either
// sign and not-a-number are the worst, +infinity.
inline double Loss(const Settings& settings, double value) {
  if (!std::isfinite(value)) return HUGE_VAL;
  return settings.maximize ? -value : value;
}

}  // namespace sweep
