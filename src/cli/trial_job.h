// A trial as a job: started as `trainyard run` starts one, and looked at through its place, this
// machine or a cluster. It has a supervisor of its own and so outlives a sweep that is killed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "cli/place.h"
#include "cli/sweep_store.h"
#include "cli/trial_metric.h"
#include "events/log_dir.h"

namespace cli {

// The --output of a trial on a cluster: on a claim that they share, each has a folder of its own,
// with its values in its name, below one of the sweep. One that begins again, in its second life,
// finds nothing of the first. Empty: as `run` has it.
std::string OutputOnCluster(const SweepPlan& plan, const std::string& folder, int64_t life);

class TrialJob {
 public:
  // `local`: its files can be read.
  TrialJob(const SweepStore& store, const sweep::Trial& trial, Place& place, bool local);

  // Makes it run: anew, or as it is when it runs already; one that was stopped before its fate was
  // decided begins again. A `fresh` one was never started: whatever has its name is another's.
  base::Result<> Start(bool fresh);
  // Reads what it has said and where it stands. An error that may pass is told, not returned.
  base::Result<> Look();
  // Asks it to end; the words become its verdict.
  base::Result<> Stop(const std::string& why);

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  bool over() const { return over_; }  // it has ended, and all it said was read
  const api::JobStatus& status() const { return status_; }
  TrialMetric& metric() { return metric_; }
  bool succeeded() const { return api::Has(status_, "Succeeded"); }
  // Why it failed, in one line.
  std::string Cause() const;

 private:
  base::Result<> Prepare();
  base::Result<bool> TakeUp();
  base::Result<> BeginAgain(PlacedJob& stopped);
  base::Result<> Revive();
  base::Result<> TryStop();
  base::Result<> RunProgram(const std::vector<std::string>& words);
  void ReadLogs();
  void Link(const std::string& name, const std::string& target);

  const SweepStore& store_;
  const sweep::Trial trial_;
  const int number_;
  const std::string name_;
  const std::string dir_;  // of the trial
  Place& place_;
  const bool local_;

  std::unique_ptr<PlacedJob> job_;
  std::optional<LogTail> tail_;
  std::unique_ptr<LogSource> source_;
  std::optional<events::LogDirReader> events_, output_events_;
  TrialMetric metric_;
  api::JobStatus status_;
  bool over_ = false;
  std::string stop_;  // why it is to end, until it was told so
  int revivals_ = 0;
};

}  // namespace cli
