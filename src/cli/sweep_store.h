// A sweep on disk: HOME/.sweeps/NAMESPACE/NAME
//
//   sweep.json     what was asked for
//   trials.log     what has happened, one checksummed line each, on disk before it is acted on
//   trials.csv     the table of trials in their order: the same for any number of slots
//   lock           held by who drives the sweep
//   metric         where the trials' metric is read from (MetricSource), once that is known
//   stop           somebody wishes that it ended
//   deleted.json   in place of all of these, once only the output is left
//   NNN-lr=0.1,layers=2/   a directory a trial: env, job.yaml, output/, links to logs and
//   tensorboard
//
// An append-only log in place of a database: there is one writer, nothing is queried, and a cut at
// any byte loses at most the line that was being written, which nothing rests on yet.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/sweep_spec.h"
#include "io/files.h"
#include "sweep/study.h"

namespace cli {

class SweepStore {
 public:
  // A new one; the name may be open: then the first free NAME-N.
  static base::Result<SweepStore> Create(SweepPlan plan, const std::string& base_name);
  // One that is there; by name, or the latest. kNotFound names the nearest.
  static base::Result<SweepStore> Open(const std::string& name_space, const std::string& name);
  // One that was deleted, whose output is still there.
  static base::Result<SweepStore> OpenRemains(const std::string& name_space,
                                              const std::string& name);
  static std::vector<std::string> List(const std::string& name_space);

  const SweepPlan& plan() const { return plan_; }
  void set_parallel(int slots) { plan_.parallel = slots; }  // of this process
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  bool IsAlive() const { return io::Lock::IsHeld(File("lock")); }
  // Before anything is written. kTaken: somebody drives it.
  base::Result<> Take();
  base::Result<> TakeSoon();  // waits for those who hold it for a moment
  // What another process may wish of who drives it.
  base::Result<> AskToStop(const std::string& by);
  bool IsAskedToStop() const { return io::Exists(File("stop")); }

  // The trials as the log has them, reports and endings that are not decided replayed.
  base::Result<sweep::Study> Load();
  base::Result<> NoteAsked(const sweep::Trial& trial);
  base::Result<> NoteReport(int number, double value);
  base::Result<> NoteEnding(int number, const sweep::Study::Ending& ending);
  base::Result<> NoteDecided(const sweep::Trial& trial);
  // The source of the metric, as text; empty until it was noted.
  base::Result<> NoteSource(const std::string& source);
  std::string Source() const;
  base::Result<> WriteTable(const std::vector<sweep::Trial>& trials);

  // "mnist-sweep-1-t3"
  std::string JobName(int number) const;
  // SWEEP/003-lr=0.1,layers=2
  std::string TrialDir(const sweep::Trial& trial) const;
  // The directories of trials that there are, by number.
  std::map<int, std::string> TrialDirs() const;

  // What of a trial is not its output; says what stays. Its directory stays too if anything of the
  // trial does, elsewhere perhaps.
  base::Result<std::vector<std::string>> RemoveTrial(const std::string& directory, bool with_output,
                                                     bool more_stays);
  // All but the directories of trials, and those with it when none is left.
  base::Result<> RemoveRecords();
  void Remove();

 private:
  SweepStore(std::string path, SweepPlan plan) : path_(std::move(path)), plan_(std::move(plan)) {}
  static base::Result<SweepStore> Read(const std::string& path, const std::string& file);
  base::Result<> Append(const base::Json& record);

  std::string path_;
  SweepPlan plan_;
  std::optional<io::Lock> lock_;
};

// The job of the best trial so far of the sweep of this name, for whoever names a sweep and means a
// model. Nothing: there is no such sweep, or no trial of it is complete.
struct BestJob {
  std::string name_space, name;
};
std::optional<BestJob> BestJobOf(const std::string& name_space, const std::string& sweep);

std::string Table(const sweep::Settings& settings, const std::vector<sweep::Trial>& trials);

}  // namespace cli
