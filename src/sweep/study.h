// Ask and tell: the trials of one sweep, what each is to try, and what has become of it.
//
//   Study study(settings);
//   while (study.CanAsk()) {
//     const Trial& trial = study.Ask();
//     study.Report(trial.number, value);      // again and again
//     study.End(trial.number, Study::Ending{});
//   }
//
// Pure: no clock, no file; who runs the trials and who remembers them is no matter here. The fate
// of a trial may come later than its end (prune.h), and that of several at once: TakeDecided names
// them. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sweep/gp.h"
#include "sweep/trial.h"

namespace sweep {

class Study {
 public:
  // The settings were checked (CheckSettings).
  explicit Study(Settings settings);
  // The same with trials of before, in order, without gaps; running ones have reported nothing.
  Study(Settings settings, std::vector<Trial> trials);

  const Settings& settings() const { return settings_; }
  const std::vector<Trial>& trials() const { return trials_; }
  int size() const { return settings_.trials; }  // how many there will be

  // There are trials left, and enough is known for the next.
  bool CanAsk() const;
  bool AllAsked() const { return static_cast<int>(trials_.size()) >= settings_.trials; }
  bool AllOver() const;
  // Must be asked only if it can. Good until the next call.
  const Trial& Ask();

  // A running trial has reported its metric once more. What comes after its end is dropped.
  void Report(int number, double value);

  struct Ending {
    bool failed = false;
    std::string reason;
    std::optional<double> value;  // instead of the last report
  };
  void End(int number, Ending ending);

  // The trials whose fate was decided since the last call, by number.
  std::vector<int> TakeDecided();

  // The best that is complete; nothing when none is.
  const Trial* Best() const;

 private:
  // What a trial that is not decided has said.
  struct Progress {
    std::vector<std::pair<int64_t, double>> waiting;  // rungs not judged yet, by count
    int64_t reports = 0;
    std::optional<double> last;
    std::optional<Ending> ending;
  };

  void Settle();
  // True: something changed.
  bool SettleOne(Trial& trial);
  void Decide(Trial& trial, State state, std::string reason);

  const Settings settings_;
  std::vector<Trial> trials_;
  std::vector<Progress> progress_;
  std::vector<int> decided_;
  GpMemory gp_;
  std::vector<Point> grid_;  // of a grid, once it was asked for a point
};

}  // namespace sweep
