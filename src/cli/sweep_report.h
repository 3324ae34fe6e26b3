// What a person reads of a sweep: the plan, a line a trial, the board, the end. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cli/sweep_store.h"
#include "io/terminal.h"

namespace cli {

// "lr=0.01 layers=2"
std::string ValuesText(const sweep::Space& space, const sweep::Point& point);

// Several lines: space, algorithm, pruning, slots.
std::string PlanText(const SweepPlan& plan, const std::string& path);

// "trial 3  complete  loss 0.0312  lr=0.01 layers=2"
std::string TrialText(const SweepPlan& plan, const sweep::Trial& trial);
base::Json TrialJson(const SweepPlan& plan, const sweep::Trial& trial);

// One line while it runs: "5/20 done · 2 running · 1 pruned · best loss 0.03 (trial 3) ▁▂▃".
std::string BoardText(const SweepPlan& plan, const std::vector<sweep::Trial>& trials, int running,
                      bool unicode);

// What a command must say to mean the place of the sweep: " --on kubernetes -n team", or nothing.
std::string TypedAgain(const SweepPlan& plan);

// The last words: best, its command line, what matters, what to type next.
std::string EndText(const SweepPlan& plan, const SweepStore& store,
                    const std::vector<sweep::Trial>& trials, const sweep::Trial* best,
                    std::optional<base::Duration> took, const io::Terminal& terminal);

}  // namespace cli
