// From a command line or a sweep file to a sweep, everything checked that can be checked before
// anything is started.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/args.h"
#include "cli/sweep_store.h"

namespace cli {

struct PlannedSweep {
  SweepPlan plan;
  std::string base_name;  // for a plan without a name
};

// Of `sweep SCRIPT`, `sweep FILE`, `sweep -f MANIFEST`.
base::Result<PlannedSweep> PlanSweep(const Args& args);

// The part that `sweep ask` shares: parameters, algorithm, pruning, goal, seed. Without a metric
// less is better.
base::Result<sweep::Settings> SettingsFrom(const Args& args, const std::string& metric);

// A command line about a sweep that is there: it means the place where that was begun, unless it
// names another.
base::Result<Args> WhereItWasBegun(const Args& args, const SweepPlan& plan);

// The number of slots, which the window bounds.
base::Result<int> SlotsFrom(const Args& args, const sweep::Settings& settings, int unless_said);

// The words after "trainyard" that start a trial by itself: what a person would type.
std::vector<std::string> RunWords(const SweepPlan& plan, const sweep::Trial& trial);

}  // namespace cli
