// Which trials are stopped early. Pure.
//
// Trials are judged in the order of their numbers: what is decided of a trial at a report depends
// only on what earlier trials reported there, never on who was quicker. So a trial may have to run
// on until earlier ones have come as far, or has even ended when it is judged; then it counts as
// pruned all the same. Asynchronous sweeps compare with whoever has come as far.
//
// A rung is a report by its count, from 1. Only rungs before the last report of the first
// complete trial count: where scripts report once, at the end, nothing is stopped.
//
//   ASHA    rungs 1, 3, 9, 27 …: goes on who is among the best third of those so far
//           (Li et al. 2018, with stopping in place of promotion)
//   median  any of the first reports, fewer later: goes on who is better than the median of those
//           before it, of which there must be four
#pragma once

#include <vector>

#include "sweep/trial.h"

namespace sweep {

enum class Judgement { kGoOn, kPrune, kUndecided };

// Whether a trial is judged at its report number `count`.
bool IsRung(const Settings& settings, int64_t count);

// Trial `number` at a rung that it has reached. Trials must be in order, without gaps.
Judgement Judge(const Settings& settings, const std::vector<Trial>& trials, int number,
                int64_t rung);

}  // namespace sweep
