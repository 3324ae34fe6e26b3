#include "sweep/study.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sweep/prune.h"
#include "sweep/search.h"

namespace sweep {
namespace {

// A grid ends with its last point, whatever number of trials was asked for.
Settings Bounded(Settings settings) {
  if (settings.algorithm == Algorithm::kGrid) {
    const auto grid = Grid(settings.space);
    settings.trials = std::min(settings.trials, grid ? static_cast<int>(grid->size()) : 0);
  }
  return settings;
}

}  // namespace

Study::Study(Settings settings) : settings_(Bounded(std::move(settings))) {}

Study::Study(Settings settings, std::vector<Trial> trials)
    : settings_(Bounded(std::move(settings))),
      trials_(std::move(trials)),
      progress_(trials_.size()) {
  for (Trial& trial : trials_) trial.units = UnitsOf(settings_.space, trial.point);
}

bool Study::CanAsk() const {
  if (AllAsked()) return false;
  if (settings_.async) return true;
  const int over = static_cast<int>(trials_.size()) - settings_.window;
  for (int n = 0; n <= over; ++n) {
    if (!IsOver(trials_[static_cast<size_t>(n)])) return false;
  }
  return true;
}

bool Study::AllOver() const { return AllAsked() && std::ranges::all_of(trials_, IsOver); }

const Trial& Study::Ask() {
  CHECK(CanAsk());
  const int number = static_cast<int>(trials_.size());
  const Space& space = settings_.space;
  Trial trial{.number = number};
  if (settings_.algorithm == Algorithm::kGrid) {
    if (grid_.empty()) grid_ = Grid(space).value_or(std::vector<Point>());
    trial.point = grid_[static_cast<size_t>(number)];
  } else {
    std::vector<double> units;
    if (settings_.algorithm == Algorithm::kRandom) {
      units = RandomPoint(settings_, number);
    } else if (settings_.algorithm == Algorithm::kTpe) {
      units = TpePoint(settings_, WhatIsKnown(settings_, trials_, number), number);
    } else {
      units = GpPoint(settings_, trials_, number, gp_);
    }
    for (size_t i = 0; i < space.size(); ++i) {
      trial.point.push_back(units[i] == kInactive ? kInactive : FromUnit(space[i], units[i]));
    }
  }
  // Of the value that it really is.
  trial.units = UnitsOf(space, trial.point);
  trials_.push_back(std::move(trial));
  progress_.emplace_back();
  return trials_.back();
}

void Study::Report(int number, double value) {
  Trial& trial = trials_[static_cast<size_t>(number)];
  Progress& progress = progress_[static_cast<size_t>(number)];
  if (IsOver(trial) || progress.ending) return;
  progress.last = value;
  if (IsRung(settings_, ++progress.reports)) {
    progress.waiting.emplace_back(progress.reports, value);
    Settle();
  }
}

void Study::End(int number, Ending ending) {
  if (IsOver(trials_[static_cast<size_t>(number)])) return;
  progress_[static_cast<size_t>(number)].ending = std::move(ending);
  Settle();
}

// What is decided of one trial may decide a later one.
void Study::Settle() {
  for (Trial& trial : trials_) {
    while (SettleOne(trial)) {
    }
  }
}

bool Study::SettleOne(Trial& trial) {
  if (IsOver(trial)) return false;
  Progress& progress = progress_[static_cast<size_t>(trial.number)];
  if (!progress.waiting.empty()) {
    const auto [rung, value] = progress.waiting.front();
    trial.rungs[rung] = value;
    switch (Judge(settings_, trials_, trial.number, rung)) {
      case Judgement::kUndecided:
        return false;
      case Judgement::kGoOn:
        progress.waiting.erase(progress.waiting.begin());
        return true;
      case Judgement::kPrune:
        trial.value = value;
        trial.reports = rung;
        Decide(trial, State::kPruned, fmt::format("pruned at report {}", rung));
        return true;
    }
  }
  if (!progress.ending) return false;
  trial.value = progress.ending->value ? progress.ending->value : progress.last;
  trial.reports = progress.reports;
  if (progress.ending->failed) {
    Decide(trial, State::kFailed, progress.ending->reason);
  } else if (!trial.value || std::isnan(*trial.value)) {
    Decide(trial, State::kFailed, trial.value ? "the metric is not a number" : "no metric");
  } else {
    Decide(trial, State::kComplete, "");
  }
  return true;
}

void Study::Decide(Trial& trial, State state, std::string reason) {
  trial.state = state;
  trial.reason = std::move(reason);
  decided_.push_back(trial.number);
}

std::vector<int> Study::TakeDecided() {
  std::ranges::sort(decided_);
  return std::exchange(decided_, {});
}

const Trial* Study::Best() const {
  const Trial* best = nullptr;
  for (const Trial& trial : trials_) {
    if (trial.state != State::kComplete || !trial.value) continue;
    if (!best || Loss(settings_, *trial.value) < Loss(settings_, *best->value)) best = &trial;
  }
  return best;
}

}  // namespace sweep
