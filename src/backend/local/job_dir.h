// Where jobs of this machine live: a directory a job, below $TRAINYARD_HOME (default
// $XDG_STATE_HOME/trainyard).
//
//   HOME/NAMESPACE/JOB/   job.yaml      the job as it was understood, a TFJob v1
//                         status.json   replaced atomically, on disk before the deed it announces
//                         events.jsonl  one event a line
//                         lock          held by the supervisor for life: alive means locked
//                         code/         the script and the modules beside it (kept_code.h)
//                         run.json      what the TFJob does not say: script, Python, directories,
//                                       ports
//                         env           the env file, readable by the owner alone
//                         environment   of the shell that started the job, readable by the owner
//                                       alone
//                         logs/ROLE-N.log   one file a replica, attempts marked
//                         endings/ROLE-N.ATTEMPT  how each incarnation ended, written by its guard
//                         python/       of a job that uses ElasticDL's client: on its PYTHONPATH
//                         ledger/       of an elastic job: what was handed out, and what is done
//                         output/ checkpoints/ tensorboard/   the user's
//
// Only the holder of the lock writes; everybody may read at any time, after a crash too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "base/result.h"
#include "io/files.h"

namespace backend::local {

// The state directory: made if it is not there, refused when it belongs to another user.
base::Result<std::string> Home();
std::string HomePath();  // the same without touching the disk

// What `run` decided and a later `resume` needs again.
struct RunFile {
  std::string script;          // as the user named it, absolute; empty for a manifest
  std::string python;          // absolute
  std::string directory;       // working directory of the replicas
  std::string output;          // TRAINYARD_OUTPUT_DIR
  int32_t first_port = 0;      // -p: first of a range; 0: leased
  int64_t hang_seconds = 0;    // --hang-restart; 0: hangs are told, not acted on
  std::vector<int32_t> ports;  // in the order of the replicas, as last leased
  int32_t master_port = 0;     // of the master of an elastic job's data; 0: not leased yet
  bool whole_code = false;     // code/ has all modules that were beside the script
  bool operator==(const RunFile&) const = default;
};

class JobDir {
 public:
  JobDir() = default;
  explicit JobDir(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  std::string LogFile(api::ReplicaId id) const {
    return File("logs/" + api::ToString(id) + ".log");
  }
  std::string EndingFile(api::ReplicaId id, int32_t attempt) const {
    return File("endings/" + api::ToString(id) + "." + std::to_string(attempt));
  }
  bool IsAlive() const { return io::Lock::IsHeld(File("lock")); }

  base::Result<api::Job> LoadJob() const;  // spec and status
  base::Result<> SaveJob(const api::Job& job) const;
  api::JobStatus LoadStatus() const;  // empty when there is none yet
  // Durably: it survives a crash of the machine; needed before a deed that rests on a counter in
  // it.
  base::Result<> SaveStatus(const api::JobStatus& status, bool durably = true) const;
  base::Result<RunFile> LoadRun() const;
  base::Result<> SaveRun(const RunFile& run) const;
  // The environment of the replicas as "KEY=value", without what is set for each of them. Nothing:
  // the job was made by a version that did not keep it.
  std::optional<std::vector<std::string>> LoadEnvironment() const;
  base::Result<> SaveEnvironment(const std::vector<std::string>& environment) const;

 private:
  std::string path_;
};

JobDir Locate(const std::string& name_space, const std::string& name);

// Takes a new directory for a job. With an explicit name a taken one is refused (kTaken); otherwise
// the first free BASE-N is taken, and two callers at once get different ones.
struct Claim {
  JobDir dir;
  std::string name;
  io::Lock lock;
};
base::Result<Claim> ClaimNamed(const std::string& name_space, const std::string& name);
base::Result<Claim> ClaimNumbered(const std::string& name_space, const std::string& base);

struct Listed {
  std::string name_space;
  std::string name;
  JobDir dir;
};
// All jobs of a namespace, or of all with an empty name, by name.
std::vector<Listed> ListJobs(const std::string& name_space);

}  // namespace backend::local
