// Jobs of this machine by what a person typed, and their supervisors.
#pragma once

#include <string>
#include <vector>

#include "api/tfjob.h"
#include "backend/local/job_dir.h"
#include "base/json.h"
#include "base/result.h"

namespace cli {

struct LocalJob {
  std::string name_space;
  std::string name;
  backend::local::JobDir dir;
};

// The job of this name, or the latest when the name is empty. kNotFound names the nearest.
base::Result<LocalJob> FindLocalJob(const std::string& name_space, const std::string& name);

// Sends a request to the job's supervisor. kUnavailable: it has none.
base::Result<base::Json> Ask(const LocalJob& job, base::JsonObject request);

// Removes a job whose ttlSecondsAfterFinished has passed; its output stays. True: it is gone.
bool DropIfExpired(const backend::local::Listed& listed, const api::JobStatus& status);

// Removes the records of a job that nothing of lives any more; output, checkpoints and TensorBoard
// logs only if told. Says what stays. kTaken: somebody has just made it run again.
base::Result<std::vector<std::string>> RemoveRecords(const LocalJob& job, bool with_output);

}  // namespace cli
