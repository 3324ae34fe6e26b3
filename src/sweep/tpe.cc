// Tree-structured Parzen estimator (Bergstra et al. 2011), multivariate.
//
// Results are split into the best seventh and the rest, and a density is put over each: a mixture
// of kernels, one at each result, and a wide one that stands for not knowing. Candidates are drawn
// from the density of the good; the one where good outweighs bad most is the suggestion.
//
// A kernel is a product over the parameters. For numbers it is a normal distribution cut off at the
// ends, as wide as the gap to the farther neighbour (as Optuna 5.0, whose figures are the
// measure), and for whole numbers at least half as wide as the cell that is rounded to one of them,
// or a density would count what is narrower than any value. For choices most of the weight is on
// its own; each of the others keeps 1 / sqrt(kernels) of that. Optuna's 1 / kernels fixes choices
// after some twenty trials, often to wrong ones. Where a space has no floats, points that were
// tried are not suggested again while there are others. Trials in the window count as bad: where
// somebody looks already nobody needs to (constant liar). Pruned trials rank behind complete ones,
// those that got farther first.
//
// Conditional parameters make the space a tree. Parameters with the same conditions are a group.
// Groups are chosen one after the other, those without conditions first, so that no branch is
// favored for having more parameters. The densities of a group are made of the results in which it
// was active, split into good and bad among themselves. Each result is weighted by how near it is
// to what was chosen for the groups before, so that values that belong together stay together.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "sweep/rng.h"
#include "sweep/search.h"

namespace sweep {
namespace {

constexpr int kStartup = 10;  // results before a model is worth anything
constexpr int kCandidates = 24;
constexpr int kMostDraws = 200;  // before a point that was tried is suggested again
constexpr size_t kMostGood = 25;
constexpr size_t kFullWeight = 25;    // the latest results; older ones weigh less
constexpr double kNegligible = 36;    // of an exponent: e^-36 of the rest
constexpr double kNarrowest = 100;    // a kernel is at least 1 / this wide
constexpr size_t kBuckets = 128;      // more than that
constexpr double kLeastNear = 1e-30;  // of a weight, so that none is 0
constexpr uint64_t kDraw = 3;

bool Unordered(const Parameter& p) { return p.kind == Kind::kChoice && !p.ordered; }

double Cumulative(double z) {
  if (z > 6) return 1;
  if (z < -6) return 0;
  return 0.5 * std::erfc(-z * 0.7071067811865476);
}

// Parameters that are active together.
struct Group {
  std::vector<size_t> parameters;
  Space space;
};

// Numbers are kept by parameter, not by kernel: the loops over kernels are what takes time.
class Mixture {
 public:
  // A kernel at the group's part of each point, the oldest first. `near` multiplies the weight of
  // each kernel, the wide one last.
  Mixture(const Group& group, const std::vector<const std::vector<double>*>& points,
          const std::vector<double>& near)
      : space_(group.space), dimensions_(group.space.size()), kernels_(points.size() + 1) {
    Weigh(near);
    mean_.assign(kernels_ * dimensions_, 0.5);
    width_.assign(kernels_ * dimensions_, 1.0);
    inverse_.assign(kernels_ * dimensions_, 0.0);
    for (size_t k = 0; k + 1 < kernels_; ++k) {
      for (size_t d = 0; d < dimensions_; ++d)
        mean_[d * kernels_ + k] = (*points[k])[group.parameters[d]];
    }
    height_ = weight_;
    for (size_t d = 0; d < dimensions_; ++d) {
      if (Unordered(space_[d])) {
        choices_.push_back(d);
      } else {
        SetWidths(d);
        if (Cells(space_[d])) WidenToCells(d);
        Normalize(d);
      }
    }
    for (double& height : height_) height = std::log(height);
  }

  std::vector<double> Draw(Rng& rng) const {
    double left = rng.Uniform();
    size_t k = 0;
    while (k + 1 < kernels_ && left >= weight_[k]) left -= weight_[k++];
    std::vector<double> point(dimensions_);
    for (size_t d = 0; d < dimensions_; ++d) {
      point[d] = Unordered(space_[d]) ? DrawChoice(k, d, rng) : DrawNumber(k, d, rng);
    }
    return point;
  }

  double LogDensity(const std::vector<double>& at) const {
    SetExponents(at);
    const double most = *std::ranges::max_element(exponents_);
    double sum = 0;
    for (double exponent : exponents_) {
      if (exponent > most - kNegligible) sum += std::exp(exponent - most);
    }
    return most + std::log(sum);
  }

  // The density of each kernel alone, the wide one last.
  std::vector<double> Densities(const std::vector<double>& at) const {
    SetExponents(at);
    std::vector<double> densities(kernels_);
    for (size_t k = 0; k < kernels_; ++k) densities[k] = std::exp(exponents_[k]) / weight_[k];
    return densities;
  }

 private:
  // The logarithms of the weight times the density of each kernel.
  void SetExponents(const std::vector<double>& at) const {
    exponents_ = height_;
    double* __restrict exponents = exponents_.data();
    for (size_t d = 0; d < dimensions_; ++d) {
      const double* mean = &mean_[d * kernels_];
      const double* inverse = &inverse_[d * kernels_];
      const double x = at[d];
      for (size_t k = 0; k < kernels_; ++k) {
        const double z = (x - mean[k]) * inverse[k];
        exponents[k] -= z * z;
      }
    }
    for (size_t d : choices_) {
      for (size_t k = 0; k < kernels_; ++k) exponents[k] += LogOfChoice(k, d, at[d]);
    }
  }

  // The latest weigh 1, those before them linearly less, down to 1/n.
  void Weigh(const std::vector<double>& near) {
    const size_t count = kernels_ - 1;
    weight_.assign(kernels_, 1.0);
    if (count > kFullWeight) {
      const size_t ramp = count - kFullWeight;
      const double least = 1.0 / static_cast<double>(count);
      for (size_t k = 0; k < ramp; ++k) {
        const double along = ramp == 1 ? 0 : static_cast<double>(k) / static_cast<double>(ramp - 1);
        weight_[k] = least + (1 - least) * along;
      }
    }
    for (size_t k = 0; k < near.size(); ++k) weight_[k] *= std::max(near[k], kLeastNear);
    const double sum = std::accumulate(weight_.begin(), weight_.end(), 0.0);
    for (double& weight : weight_) weight /= sum;
  }

  // As wide as the gap to the farther neighbour, within bounds. Gaps within one of kBuckets are
  // below the lower bound, so that only the ends of a bucket need be known, and nothing is sorted.
  void SetWidths(size_t d) {
    const size_t count = kernels_ - 1;
    const double least = 1.0 / std::min(kNarrowest, 1.0 + static_cast<double>(kernels_));
    const double* mean = &mean_[d * kernels_];
    double* width = &width_[d * kernels_];
    if (count == 1) {
      width[0] = std::max(mean[0], 1 - mean[0]);
      return;
    }
    std::array<int32_t, kBuckets + 1> lowest, highest;
    lowest.fill(-1);
    for (size_t k = 0; k < count; ++k) {
      width[k] = least;
      const auto bucket = static_cast<size_t>(mean[k] * kBuckets);
      const auto kernel = static_cast<int32_t>(k);
      if (lowest[bucket] < 0) {
        lowest[bucket] = highest[bucket] = kernel;
      } else if (mean[k] < mean[lowest[bucket]]) {
        lowest[bucket] = kernel;
      } else if (mean[k] > mean[highest[bucket]]) {
        highest[bucket] = kernel;
      }
    }
    int32_t before = -1;
    for (size_t bucket = 0; bucket <= kBuckets; ++bucket) {
      if (lowest[bucket] < 0) continue;
      if (before >= 0) {
        const double gap = mean[lowest[bucket]] - mean[before];
        width[before] = std::max(width[before], gap);
        width[lowest[bucket]] = std::max(width[lowest[bucket]], gap);
      }
      before = highest[bucket];
    }
  }

  void WidenToCells(size_t d) {
    const Parameter& p = space_[d];
    for (size_t k = 0; k + 1 < kernels_; ++k) {
      const size_t i = d * kernels_ + k;
      width_[i] = std::max(width_[i], 0.5 * CellWidth(p, mean_[i]));
    }
  }

  // What makes the kernel a density, and 1 / (width sqrt 2), so that a square is all that is left.
  void Normalize(size_t d) {
    for (size_t k = 0; k < kernels_; ++k) {
      const size_t i = d * kernels_ + k;
      const double inverse = 1 / width_[i];
      inverse_[i] = 0.7071067811865476 * inverse;
      height_[k] *= inverse;
      const double to_high = (1 - mean_[i]) * inverse, to_low = mean_[i] * inverse;
      if (std::min(to_high, to_low) < 6) height_[k] /= Cumulative(to_high) - Cumulative(-to_low);
    }
  }

  size_t CellOf(size_t d, double unit) const {
    return static_cast<size_t>(FromUnit(space_[d], unit));
  }

  // The weight of every choice beside 1 for the kernel's own.
  double Share() const { return 1 / std::sqrt(static_cast<double>(kernels_)); }

  double LogOfChoice(size_t k, size_t d, double unit) const {
    const double cells = static_cast<double>(space_[d].choices.size());
    const double share = Share();
    const bool prior = k + 1 == kernels_;
    const bool own = !prior && CellOf(d, unit) == CellOf(d, mean_[d * kernels_ + k]);
    return prior ? -std::log(cells) : std::log((share + (own ? 1 : 0)) / (share * cells + 1));
  }

  double DrawChoice(size_t k, size_t d, Rng& rng) const {
    const double cells = static_cast<double>(space_[d].choices.size());
    const double share = Share();
    const double left = rng.Uniform() * (share * cells + 1) - 1;
    if (k + 1 < kernels_ && left < 0) return mean_[d * kernels_ + k];
    return ToUnit(space_[d], static_cast<double>(rng.Below(space_[d].choices.size())));
  }

  double DrawNumber(size_t k, size_t d, Rng& rng) const {
    const size_t i = d * kernels_ + k;
    double unit = 0.5;
    // At least a third of any kernel lies within.
    do {
      unit = mean_[i] + width_[i] * rng.Normal();
    } while (unit < 0 || unit > 1);
    // At a value that exists, as it will be counted later.
    return Cells(space_[d]) ? ToUnit(space_[d], FromUnit(space_[d], unit)) : unit;
  }

  const Space& space_;
  const size_t dimensions_;
  const size_t kernels_;  // the last is the wide one
  std::vector<double> weight_, mean_, width_, inverse_, height_;
  std::vector<size_t> choices_;  // the parameters without order
  mutable std::vector<double> exponents_;
};

bool IsBetter(const Known::Result* a, const Known::Result* b) {
  if (a->pruned != b->pruned) return b->pruned;
  if (a->pruned && a->reports != b->reports) return a->reports > b->reports;
  if (a->loss != b->loss) return a->loss < b->loss;
  return a->number < b->number;
}

std::vector<Group> GroupsOf(const Space& space) {
  std::vector<Group> groups;
  for (size_t p : ParentsFirst(space)) {
    const auto same = [&](const Group& group) { return group.space[0].when == space[p].when; };
    auto group = std::ranges::find_if(groups, same);
    if (group == groups.end()) group = groups.insert(group, Group());
    group->parameters.push_back(p);
    group->space.push_back(space[p]);
  }
  return groups;
}

// Makes one suggestion, group by group.
class Suggestion {
 public:
  Suggestion(const Space& space, const Known& known, Rng& rng)
      : space_(space), known_(known), rng_(rng), groups_(GroupsOf(space)) {}

  std::vector<double> Draw() {
    units_.assign(space_.size(), kInactive);
    point_.assign(space_.size(), kInactive);
    near_.assign(known_.results.size() + known_.pending.size(), 1.0);
    wide_ = 1;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (IsActive(space_, groups_[g].parameters[0], point_)) Choose(g);
    }
    return units_;
  }

 private:
  // The results and pending trials of one density, by their indices in near_.
  struct Side {
    std::vector<size_t> trials;
    std::vector<const std::vector<double>*> points;
    std::vector<double> near;
  };

  void Add(Side& side, size_t trial) const {
    const size_t results = known_.results.size();
    side.trials.push_back(trial);
    side.points.push_back(trial < results ? known_.results[trial].at
                                          : known_.pending[trial - results]);
    side.near.push_back(near_[trial]);
  }

  // The best seventh of the results in which the group is active, and the others.
  std::pair<Side, Side> Split(const Group& group) const {
    const size_t first = group.parameters[0], results = known_.results.size();
    std::vector<size_t> ranked;
    for (size_t i = 0; i < results; ++i) {
      if ((*known_.results[i].at)[first] != kInactive) ranked.push_back(i);
    }
    const auto middle =
        ranked.begin() + static_cast<ptrdiff_t>(std::min((ranked.size() + 6) / 7, kMostGood));
    std::ranges::nth_element(ranked, middle, [&](size_t a, size_t b) {
      return IsBetter(&known_.results[a], &known_.results[b]);
    });
    std::sort(ranked.begin(), middle);
    std::sort(middle, ranked.end());
    std::pair<Side, Side> sides;
    for (auto i = ranked.begin(); i != middle; ++i) Add(sides.first, *i);
    for (auto i = middle; i != ranked.end(); ++i) Add(sides.second, *i);
    for (size_t i = 0; i < known_.pending.size(); ++i) {
      if ((*known_.pending[i])[first] != kInactive) Add(sides.second, results + i);
    }
    sides.first.near.push_back(wide_);
    sides.second.near.push_back(wide_);
    return sides;
  }

  void Choose(size_t g) {
    const Group& group = groups_[g];
    const auto [below, above] = Split(group);
    const Mixture likes(group, below.points, below.near);
    const Mixture dislikes(group, above.points, above.near);
    std::vector<double> best;
    double best_score = -std::numeric_limits<double>::infinity();
    for (int i = 0; i < kCandidates || (best.empty() && i < kMostDraws); ++i) {
      std::vector<double> candidate = likes.Draw(rng_);
      Set(group, candidate);
      if (IsWhole(g) && CanRepeat() && IsTried(known_, units_)) continue;
      const double score = likes.LogDensity(candidate) - dislikes.LogDensity(candidate);
      if (best.empty() || score > best_score) {
        best_score = score;
        best = std::move(candidate);
      }
    }
    if (best.empty()) best = likes.Draw(rng_);
    Set(group, best);
    if (g + 1 == groups_.size()) return;
    for (const auto& [side, mixture] : {std::pair(&below, &likes), std::pair(&above, &dislikes)}) {
      const std::vector<double> densities = mixture->Densities(best);
      for (size_t k = 0; k < side->trials.size(); ++k) near_[side->trials[k]] *= densities[k];
      if (mixture == &likes) wide_ *= densities.back();
    }
  }

  void Set(const Group& group, const std::vector<double>& part) {
    for (size_t i = 0; i < part.size(); ++i) {
      const size_t p = group.parameters[i];
      units_[p] = part[i];
      // No condition names a float, whose six digits take time.
      if (Cells(space_[p])) point_[p] = FromUnit(space_[p], part[i]);
    }
  }

  // No group after this one is active beside what was chosen.
  bool IsWhole(size_t g) const {
    return std::none_of(groups_.begin() + static_cast<ptrdiff_t>(g) + 1, groups_.end(),
                        [&](const Group& other) {
                          return IsActive(space_, other.parameters[0], point_);
                        });
  }

  bool CanRepeat() const {
    for (size_t p = 0; p < space_.size(); ++p) {
      if (units_[p] != kInactive && Cells(space_[p]) == 0) return false;
    }
    return true;
  }

  const Space& space_;
  const Known& known_;
  Rng& rng_;
  const std::vector<Group> groups_;
  std::vector<double> units_;  // what was chosen so far
  Point point_;                // the same as values, of what conditions can name
  std::vector<double> near_;   // of each result, then of each pending trial
  double wide_ = 1;
};

}  // namespace

std::vector<double> TpePoint(const Settings& settings, const Known& known, int number) {
  if (known.results.size() < kStartup) return SpreadPoint(settings, number);
  Rng rng(settings.seed, static_cast<uint64_t>(number), kDraw);
  Suggestion suggestion(settings.space, known, rng);
  std::vector<double> units = suggestion.Draw();
  // A branch may have no point left that was not tried: another may.
  for (int i = 0; i < kMostDraws && IsConditional(settings.space) && IsTried(known, units); ++i)
    units = i % 2 ? suggestion.Draw() : RandomPoint(settings, number + i * kMostDraws);
  return units;
}

}  // namespace sweep
