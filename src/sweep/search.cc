#include "sweep/search.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sweep/rng.h"

namespace sweep {

using base::Invalid;
using base::Result;

namespace {

constexpr int kMostTrials = 100'000;
constexpr size_t kMostGpChoices = 50;  // of parameters without order
constexpr uint64_t kRandomDraw = 1, kSpreadShift = 2;

}  // namespace

std::string_view Name(State state) {
  switch (state) {
    case State::kRunning:
      return "running";
    case State::kComplete:
      return "complete";
    case State::kPruned:
      return "pruned";
    case State::kFailed:
      return "failed";
  }
  return "";
}

std::vector<double> UnitsOf(const Space& space, const Point& point) {
  std::vector<double> units(space.size());
  for (size_t i = 0; i < space.size(); ++i) units[i] = ToUnit(space[i], point[i]);
  return units;
}

Known WhatIsKnown(const Settings& settings, const std::vector<Trial>& trials, int number) {
  Known known;
  known.results.reserve(trials.size());
  for (const Trial& trial : trials) {
    if (trial.number >= number) continue;
    const bool in_window = !settings.async && trial.number > number - settings.window;
    if (in_window || trial.state == State::kRunning) {
      known.pending.push_back(&trial.units);
    } else if (trial.value && (trial.state != State::kFailed || !std::isfinite(*trial.value))) {
      known.results.push_back({&trial.units, Loss(settings, *trial.value), trial.number,
                               trial.reports, trial.state == State::kPruned});
    }
  }
  // Diverged trials count as the worst of the others.
  double worst = -HUGE_VAL;
  for (const Known::Result& result : known.results) {
    if (std::isfinite(result.loss)) worst = std::max(worst, result.loss);
  }
  for (Known::Result& result : known.results) {
    if (!std::isfinite(result.loss)) result.loss = std::isfinite(worst) ? worst : 0;
  }
  return known;
}

bool IsTried(const Known& known, const std::vector<double>& units) {
  return std::ranges::any_of(known.results, [&](const auto& r) { return *r.at == units; }) ||
         std::ranges::any_of(known.pending, [&](const auto* at) { return *at == units; });
}

std::vector<double> RandomPoint(const Settings& settings, int number) {
  Rng rng(settings.seed, static_cast<uint64_t>(number), kRandomDraw);
  std::vector<double> point(settings.space.size());
  for (double& unit : point) unit = rng.Uniform();
  DeactivateUnits(settings.space, point);
  return point;
}

// Steps by powers of the root of x^(d+1) = x + 1, from a start that the seed shifts: low
// discrepancy in any number of dimensions (Roberts' R sequence).
std::vector<double> SpreadPoint(const Settings& settings, int number) {
  const size_t dimensions = settings.space.size();
  double root = 2;
  for (int i = 0; i < 40; ++i)
    root = std::pow(1 + root, 1.0 / (static_cast<double>(dimensions) + 1));
  Rng rng(settings.seed, 0, kSpreadShift);
  std::vector<double> point(dimensions);
  double step = 1;
  for (double& unit : point) {
    step /= root;
    unit = std::fmod(rng.Uniform() + step * (number + 1), 1.0);
  }
  DeactivateUnits(settings.space, point);
  return point;
}

Result<std::vector<Point>> Grid(const Space& space) {
  for (const Parameter& parameter : space) {
    if (Cells(parameter) > 0) continue;
    return Invalid(
        fmt::format("{}: a grid needs values, not a range of numbers: --param {}=0.1,0.01, or "
                    "another --algorithm",
                    parameter.name, parameter.name));
  }
  // Parameter by parameter; what is inactive beside the values before it has one place.
  std::vector<Point> points = {Point(space.size(), kInactive)};
  for (size_t i : ParentsFirst(space)) {
    const double first = space[i].kind == Kind::kInt ? space[i].low : 0;
    const size_t cells = Cells(space[i]);
    std::vector<Point> longer;
    for (const Point& point : points) {
      const bool active = IsActive(space, i, point);
      for (size_t cell = 0; cell < (active ? cells : 1); ++cell) {
        if (longer.size() == kMostTrials)
          return Invalid(fmt::format("the grid has more than {} points", kMostTrials));
        longer.push_back(point);
        if (active) longer.back()[i] = first + static_cast<double>(cell);
      }
    }
    points = std::move(longer);
  }
  std::ranges::sort(points);
  return points;
}

Result<> CheckSettings(const Settings& settings) {
  TRY(CheckSpace(settings.space));
  if (settings.algorithm == Algorithm::kGrid) TRY(Grid(settings.space));
  if (settings.algorithm == Algorithm::kGp) {
    size_t choices = 0;
    for (const Parameter& parameter : settings.space) {
      if (parameter.kind == Kind::kChoice && !parameter.ordered)
        choices += parameter.choices.size();
    }
    if (choices > kMostGpChoices) {
      return Invalid(fmt::format(
          "a Gaussian process is for {} values of choices at most, not {}: use --algorithm tpe",
          kMostGpChoices, choices));
    }
    if (settings.space.size() > 20) {
      return Invalid("a Gaussian process is for 20 parameters at most: use --algorithm tpe");
    }
  }
  if (settings.trials < 1 || settings.trials > kMostTrials) {
    return Invalid(fmt::format("the number of trials must be from 1 to {}", kMostTrials));
  }
  if (settings.window < 1 || settings.window > 1000) {
    return Invalid("the window must be from 1 to 1000");
  }
  return {};
}

}  // namespace sweep
