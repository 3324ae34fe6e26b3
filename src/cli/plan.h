// From a command line to a job: what `run` and `render` share.
#pragma once

#include <string>
#include <vector>

#include "api/tfjob.h"
#include "backend/local/job_dir.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/args.h"

namespace cli {

struct Plan {
  api::Job job;  // metadata.name is empty unless the user chose one
  std::string base_name;
  backend::local::RunFile run;
  std::string script_text;         // empty for a manifest
  std::string command_text;        // -c
  std::string env_text;            // -e
  std::vector<base::Json> others;  // what stands beside the job in its manifest
  std::vector<std::string> warnings;
};

// Checks everything that can be checked before anything is started or written.
base::Result<Plan> MakePlan(const Args& args);

}  // namespace cli
