// A sweep as it was asked for, and as it is written down in sweep.json.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "sweep/trial.h"

namespace cli {

// What a sweep is, as it was typed.
struct SweepPlan {
  std::string name;
  std::string name_space;  // of the sweep
  std::string job_space;   // of its jobs
  sweep::Settings settings;
  std::string metric;
  int parallel = 1;
  std::string on;                      // --on
  std::string directory;               // where it was typed
  std::string script;                  // absolute; empty: a manifest, or ask and tell
  std::string manifest;                // the text of a manifest in which ${lr} is replaced
  std::vector<std::string> run_flags;  // "--workers=2": for every trial
  std::vector<std::string> arguments;  // of the script, before the parameters
  std::string env;                     // the text of the env file
  std::string output;                  // --output

  bool operator==(const SweepPlan&) const = default;
};

base::Json EncodePlan(const SweepPlan& plan);
base::Result<SweepPlan> DecodePlan(const base::Json& json);

}  // namespace cli
