// Where to look next. Pure: the same settings, trials and number give the same point.
#pragma once

#include <vector>

#include "base/result.h"
#include "sweep/trial.h"

namespace sweep {

// What a searcher knows when it suggests a trial, in units of [0, 1], which are the trials' own.
struct Known {
  struct Result {
    const std::vector<double>* at = nullptr;
    double loss = 0;
    int number = 0;
    int64_t reports = 0;
    bool pruned = false;
  };
  std::vector<Result> results;                      // by number
  std::vector<const std::vector<double>*> pending;  // asked for, and no more is known
};

std::vector<double> UnitsOf(const Space& space, const Point& point);
Known WhatIsKnown(const Settings& settings, const std::vector<Trial>& trials, int number);

// Whether a trial has this very point.
bool IsTried(const Known& known, const std::vector<double>& units);

// Each of them: the point of trial `number`, in units.
std::vector<double> RandomPoint(const Settings& settings, int number);
// Spread evenly: what a model starts from.
std::vector<double> SpreadPoint(const Settings& settings, int number);
std::vector<double> TpePoint(const Settings& settings, const Known& known, int number);

// All points of a grid, each once: the first parameter turns slowest, as in the nested loops of a
// shell script. An error when there are none or too many.
base::Result<std::vector<Point>> Grid(const Space& space);

// Nothing is refused later than here.
base::Result<> CheckSettings(const Settings& settings);

}  // namespace sweep
