// What a job's replicas print and write, read along while it runs: log lines, progress, metrics,
// and whether it still gets anywhere.
//
// No thread: the owner calls ReadLogs when files may have grown. Replicas are never held up by it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/tfjob.h"
#include "backend/local/job_dir.h"
#include "base/time.h"
#include "cli/log_tail.h"
#include "cli/log_view.h"
#include "events/log_dir.h"

namespace cli {

// Whose progress is the job's: the chief, else worker 0.
api::ReplicaId Leader(const api::JobSpec& spec);

class JobWatch {
 public:
  // What lies in the logs already was read by an earlier supervisor and is passed over.
  JobWatch(backend::local::JobDir dir, bool raw);

  // Reads what the logs of these replicas have grown by; false when they have not.
  bool ReadLogs(const api::JobSpec& spec, base::Time now);
  // The leader's log lines first, what they do not say from event files.
  api::Progress ReadProgress(const api::Job& job, base::Time now);
  // How long no chief or worker has got any further, as far as their output tells; nothing before
  // the first step. A parameter server and an evaluator are silent by nature.
  std::optional<base::Duration> SinceAdvance(const api::JobSpec& spec, base::Time now) const;
  // Replicas began anew at this time: what came before says nothing of them.
  void Restarted(base::Time now) { restarted_ = now; }

  LogView& lines() { return view_; }
  const LogView& lines() const { return view_; }

 private:
  backend::local::JobDir dir_;
  std::map<api::ReplicaId, LogTail> tails_;
  LogView view_;
  events::LogDirReader event_files_;
  std::optional<base::Time> event_advance_;  // when event files last had news
  base::Time restarted_;
};

}  // namespace cli
