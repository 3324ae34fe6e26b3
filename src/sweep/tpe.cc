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
constexpr size_t kFullWeight = 25;  // the latest results; older ones weigh less
constexpr double kNegligible = 36;  // of an exponent: e^-36 of the rest
constexpr double kNarrowest = 100;  // a kernel is at least 1 / this wide
constexpr size_t kBuckets = 128;    // more than that
constexpr uint64_t kDraw = 3;

bool Unordered(const Parameter& p) { return p.kind == Kind::kChoice && !p.ordered; }

double Cumulative(double z) {
  if (z > 6) return 1;
  if (z < -6) return 0;
  return 0.5 * std::erfc(-z * 0.7071067811865476);
}

// Numbers are kept by parameter, not by kernel: the loops over kernels are what takes time.
class Mixture {
 public:
  Mixture(const Space& space, const std::vector<const std::vector<double>*>& points)
      : space_(space), dimensions_(space.size()), kernels_(points.size() + 1) {
    Weigh();
    mean_.assign(kernels_ * dimensions_, 0.5);
    width_.assign(kernels_ * dimensions_, 1.0);
    inverse_.assign(kernels_ * dimensions_, 0.0);
    for (size_t k = 0; k + 1 < kernels_; ++k) {
      for (size_t d = 0; d < dimensions_; ++d) mean_[d * kernels_ + k] = (*points[k])[d];
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
    const double most = *std::ranges::max_element(exponents_);
    double sum = 0;
    for (double exponent : exponents_) {
      if (exponent > most - kNegligible) sum += std::exp(exponent - most);
    }
    return most + std::log(sum);
  }

 private:
  // The latest weigh 1, those before them linearly less, down to 1/n.
  void Weigh() {
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

}  // namespace

std::vector<double> TpePoint(const Settings& settings, const Known& known, int number) {
  if (known.results.size() < kStartup) return SpreadPoint(settings, number);
  std::vector<const Known::Result*> ranked;
  for (const Known::Result& result : known.results) ranked.push_back(&result);
  const size_t good = std::min((ranked.size() + 6) / 7, kMostGood);
  std::ranges::nth_element(ranked, ranked.begin() + static_cast<ptrdiff_t>(good), IsBetter);
  const auto by_number = [](const Known::Result* a, const Known::Result* b) {
    return a->number < b->number;
  };
  std::sort(ranked.begin(), ranked.begin() + static_cast<ptrdiff_t>(good), by_number);
  std::sort(ranked.begin() + static_cast<ptrdiff_t>(good), ranked.end(), by_number);
  std::vector<const std::vector<double>*> below, above;
  for (size_t i = 0; i < ranked.size(); ++i) (i < good ? below : above).push_back(ranked[i]->at);
  above.insert(above.end(), known.pending.begin(), known.pending.end());

  const Mixture likes(settings.space, below), dislikes(settings.space, above);
  Rng rng(settings.seed, static_cast<uint64_t>(number), kDraw);
  std::vector<double> best;
  double best_score = -std::numeric_limits<double>::infinity();
  const bool can_repeat =
      std::ranges::all_of(settings.space, [](const Parameter& p) { return Cells(p) > 0; });
  for (int i = 0; i < kCandidates || (best.empty() && i < kMostDraws); ++i) {
    std::vector<double> candidate = likes.Draw(rng);
    if (can_repeat && IsTried(known, candidate)) continue;
    const double score = likes.LogDensity(candidate) - dislikes.LogDensity(candidate);
    if (best.empty() || score > best_score) {
      best_score = score;
      best = std::move(candidate);
    }
  }
  return best.empty() ? likes.Draw(rng) : best;
}

}  // namespace sweep
