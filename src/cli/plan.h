// From a command line to a job: what `run` and `render` share, here and on a cluster.
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
  api::Job job;  // metadata.name and name_space are empty unless the user chose them
  std::string base_name;
  backend::local::RunFile run;
  std::string script_text;         // empty for a manifest
  std::string code_dir;            // the directory that was named instead of a script; else empty
  std::string command_text;        // -c
  std::string env_text;            // -e
  std::vector<base::Json> others;  // objects of a manifest beside the job
  std::vector<std::string> warnings;
};

// What the command line says, wherever it is to run.
base::Result<Plan> ReadPlan(const Args& args);
// The rules that hold for the job of a plan, wherever it runs; its name may still be open.
base::Result<> CheckJob(const Plan& plan);
// What the local world cannot do with a job that is otherwise right.
base::Result<> CheckRunsHere(const Plan& plan);

// The same for this machine: checks everything that can be checked before anything is started or
// written.
base::Result<Plan> MakePlan(const Args& args);

}  // namespace cli
