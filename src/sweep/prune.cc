#include "sweep/prune.h"

#include <algorithm>

namespace sweep {
namespace {

constexpr size_t kMedianNeeds = 4;

}  // namespace

bool IsRung(const Settings& settings, int64_t count) {
  if (settings.pruning == Pruning::kNone || count < 1) return false;
  if (settings.pruning == Pruning::kMedian) {
    // All up to 8, then four to each doubling.
    int64_t apart = 1;
    while (count / apart >= 8) apart *= 2;
    return count % apart == 0;
  }
  while (count % settings.reduction == 0) count /= settings.reduction;
  return count == 1;
}

Judgement Judge(const Settings& settings, const std::vector<Trial>& trials, int number,
                int64_t rung) {
  // The first complete trial says how many reports there are.
  const int others_end = settings.async ? static_cast<int>(trials.size()) : number;
  const Trial* whole = nullptr;
  for (int n = 0; n < others_end && !whole; ++n) {
    const Trial& trial = trials[static_cast<size_t>(n)];
    if (!IsOver(trial) && !settings.async) return Judgement::kUndecided;
    if (trial.state == State::kComplete) whole = &trial;
  }
  if (!whole || rung >= whole->reports) return Judgement::kGoOn;

  const auto own = trials[static_cast<size_t>(number)].rungs.find(rung);
  if (own == trials[static_cast<size_t>(number)].rungs.end()) return Judgement::kGoOn;
  std::vector<double> others;
  for (int n = 0; n < others_end; ++n) {
    const Trial& trial = trials[static_cast<size_t>(n)];
    if (n == number) continue;
    if (const auto found = trial.rungs.find(rung); found != trial.rungs.end()) {
      others.push_back(Loss(settings, found->second));
    } else if (!IsOver(trial) && !settings.async) {
      return Judgement::kUndecided;
    }
  }
  const double loss = Loss(settings, own->second);
  if (settings.pruning == Pruning::kMedian) {
    if (others.size() < kMedianNeeds) return Judgement::kGoOn;
    const auto middle = others.begin() + static_cast<ptrdiff_t>(others.size() / 2);
    std::nth_element(others.begin(), middle, others.end());
    return loss <= *middle ? Judgement::kGoOn : Judgement::kPrune;
  }
  const auto better = std::ranges::count_if(others, [&](double other) { return other < loss; });
  const int64_t places =
      std::max<int64_t>(1, (static_cast<int64_t>(others.size()) + 1) / settings.reduction);
  return better < places ? Judgement::kGoOn : Judgement::kPrune;
}

}  // namespace sweep
