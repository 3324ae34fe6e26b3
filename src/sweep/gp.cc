// Matern 5/2 with a length scale for each parameter, fitted to the most likely under mild
// priors; the next trial is where the expected improvement is greatest, in its logarithm, which has
// slopes where the improvement itself is flat (Ament et al. 2023).
//
// A choice without order has a column for each value, and one length scale for all of them: any two
// values are equally far apart. The improvement is searched over values that exist: floats climb
// its slope, choices and small ranges of whole numbers try each other value in turn.
//
// A conditional parameter that is a number lies on an arc of radius 1 and length 1, in two columns;
// an inactive one is at the center (Swersky et al. 2013). So an inactive parameter is equally far
// from all values, and two points without it do not differ in it.
//
// A branch of which few points are known may look worse than it is, and the search would refine the
// best point of another branch forever. So in a conditional space a suggestion that hardly differs
// from a known result is replaced by a point of the even spread.
//
// Trials in the window are believed to give what the model expects of them, so that it looks
// elsewhere. The only file that sees Eigen.
#include "sweep/gp.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <Eigen/Cholesky>
#include <Eigen/Dense>

#include "sweep/minimize.h"
#include "sweep/rng.h"

namespace sweep {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr size_t kStartup = 8;
constexpr size_t kMostPoints = 300;  // of the model; beyond: the best half and the latest half
constexpr size_t kMostFitted = 90;   // of a fit of the length scales
constexpr int kScattered = 96, kNear = 32, kClimbs = 3;  // candidates; how many are improved on
constexpr double kStay = 0.7;  // near the best: how likely it keeps a value that is not a float's
constexpr double kHardly = 1e-3;  // of [0, 1]: how far apart points are that hardly differ
constexpr uint64_t kDraw = 4;
constexpr double kSqrt5 = 2.23606797749979;

struct Data {
  MatrixXd at;  // a row a point
  VectorXd y;   // standardized: small is good
};

// The columns of the model that stand for the parameters of a space.
class Layout {
 public:
  explicit Layout(const Space& space) : space_(space) {
    for (size_t p = 0; p < space.size(); ++p) {
      first_.push_back(parameter_.size());
      parameter_.resize(parameter_.size() + Width(p), p);
      is_parent_.push_back(std::ranges::any_of(space, [&](const Parameter& other) {
        return std::ranges::count(other.when, space[p].name, &Condition::parent) > 0;
      }));
    }
  }

  const Space& space() const { return space_; }
  Eigen::Index columns() const { return static_cast<Eigen::Index>(parameter_.size()); }
  size_t ParameterOf(Eigen::Index column) const { return parameter_[static_cast<size_t>(column)]; }
  bool IsSplit(size_t p) const {
    return space_[p].kind == Kind::kChoice && !space_[p].ordered && space_[p].choices.size() > 2;
  }
  // Few enough values to try each of them.
  bool IsListed(size_t p) const {
    const size_t cells = Cells(space_[p]);
    return cells > 0 && (IsSplit(p) || cells <= kMostListed);
  }

  void Set(double* row, size_t p, double unit) const {
    double* at = row + first_[p];
    std::fill(at, at + Width(p), 0.0);
    if (unit == kInactive) return;
    if (IsSplit(p)) {
      at[static_cast<size_t>(FromUnit(space_[p], unit))] = kApart;
    } else if (IsArc(p)) {
      at[0] = std::sin(unit);
      at[1] = std::cos(unit);
    } else {
      *at = unit;
    }
  }
  // The slope along a parameter that is not split, from the slopes along its columns.
  double Slope(const std::vector<double>& by_column, size_t p, double unit) const {
    const double* at = by_column.data() + first_[p];
    return IsArc(p) ? std::cos(unit) * at[0] - std::sin(unit) * at[1] : *at;
  }
  std::vector<double> RowOf(const std::vector<double>& units) const {
    std::vector<double> row(parameter_.size());
    for (size_t p = 0; p < space_.size(); ++p) Set(row.data(), p, units[p]);
    return row;
  }
  // As the trial will have them: values that exist, and no others than those that are active.
  std::vector<double> Actual(std::vector<double> units) const {
    for (size_t p = 0; p < space_.size(); ++p) units[p] = Snapped(p, units[p]);
    DeactivateUnits(space_, units);
    return units;
  }
  // Has any value without making other parameters active or inactive.
  bool IsFree(size_t p) const { return !IsListed(p) && !is_parent_[p]; }
  double Snapped(size_t p, double unit) const {
    return Cells(space_[p]) ? ToUnit(space_[p], FromUnit(space_[p], unit)) : unit;
  }

 private:
  static constexpr size_t kMostListed = 24;
  static constexpr double kApart = 0.7071067811865476;  // so that two values are 1 apart
  bool IsArc(size_t p) const { return !IsSplit(p) && !space_[p].when.empty(); }
  size_t Width(size_t p) const {
    if (IsSplit(p)) return space_[p].choices.size();
    return IsArc(p) ? 2 : 1;
  }

  const Space& space_;
  std::vector<size_t> first_;      // of each parameter
  std::vector<size_t> parameter_;  // of each column
  std::vector<bool> is_parent_;    // of each parameter: a condition names it
};

struct Hyper {
  Hyper(const Layout& layout, const std::vector<double>& logs) : scale(layout.columns()) {
    for (Eigen::Index c = 0; c < scale.size(); ++c)
      scale[c] = std::exp(-logs[layout.ParameterOf(c)]);
    variance = std::exp(logs[logs.size() - 2]);
    noise = std::exp(logs[logs.size() - 1]);
  }
  VectorXd scale;  // 1 / length, of each column
  double variance = 1;
  double noise = 1e-6;
};

double Matern(double r) { return (1 + kSqrt5 * r + 5.0 / 3 * r * r) * std::exp(-kSqrt5 * r); }
// d Matern / d(r²): the same for a length scale and for a coordinate.
double MaternSlope(double r) { return -5.0 / 6 * (1 + kSqrt5 * r) * std::exp(-kSqrt5 * r); }

MatrixXd SquaredDistances(const MatrixXd& a, const MatrixXd& b) {
  MatrixXd squares = -2 * a * b.transpose();
  squares.colwise() += a.rowwise().squaredNorm();
  squares.rowwise() += b.rowwise().squaredNorm().transpose();
  return squares.cwiseMax(0.0);
}

MatrixXd Kernel(const Hyper& hyper, const MatrixXd& a, const MatrixXd& b) {
  const MatrixXd scaled_a = a * hyper.scale.asDiagonal(), scaled_b = b * hyper.scale.asDiagonal();
  return hyper.variance * SquaredDistances(scaled_a, scaled_b).unaryExpr([](double s) {
    return Matern(std::sqrt(s));
  });
}

// Minus the logarithm of likelihood times priors.
double Unlikeliness(const Layout& layout, const Data& data, const std::vector<double>& logs,
                    std::vector<double>& gradient) {
  const Hyper hyper(layout, logs);
  const Eigen::Index n = data.y.size();
  const MatrixXd scaled = data.at * hyper.scale.asDiagonal();
  const MatrixXd r = SquaredDistances(scaled, scaled).cwiseSqrt();
  const MatrixXd kernel = hyper.variance * r.unaryExpr(&Matern);
  MatrixXd covariance = kernel;
  covariance.diagonal().array() += hyper.noise + 1e-8;
  const Eigen::LLT<MatrixXd> cholesky(covariance);
  gradient.assign(logs.size(), 0.0);
  if (cholesky.info() != Eigen::Success) return 1e10;
  const VectorXd alpha = cholesky.solve(data.y);
  const MatrixXd inverse = cholesky.solve(MatrixXd::Identity(n, n));
  double total = 0.5 * data.y.dot(alpha) + cholesky.matrixLLT().diagonal().array().log().sum();

  const MatrixXd pull = inverse - alpha * alpha.transpose();  // d total / d covariance, twice
  const MatrixXd slope = hyper.variance * pull.cwiseProduct(r.unaryExpr(&MaternSlope));
  for (Eigen::Index d = 0; d < layout.columns(); ++d) {
    // r² has (x - x')² / length², so d/d log length is -2 of it.
    const VectorXd column = scaled.col(d);
    const VectorXd squares = column.cwiseAbs2();
    const double sum = 2 * (slope.rowwise().sum().dot(squares) - column.dot(slope * column));
    gradient[layout.ParameterOf(d)] += 0.5 * -2 * sum;
  }
  const size_t at_variance = logs.size() - 2, at_noise = logs.size() - 1;
  gradient[at_variance] = 0.5 * pull.cwiseProduct(kernel).sum();
  gradient[at_noise] = 0.5 * pull.trace() * hyper.noise;

  const auto prior = [&](size_t i, double mean, double deviation) {
    const double z = (logs[i] - mean) / deviation;
    total += 0.5 * z * z;
    gradient[i] += z / deviation;
  };
  const double middle = std::log(0.4) + 0.25 * std::log(static_cast<double>(at_variance));
  for (size_t d = 0; d < at_variance; ++d) prior(d, middle, 0.9);
  prior(at_variance, 0.5, 1.0);
  prior(at_noise, std::log(1e-5), 2.0);
  return total;
}

std::vector<double> FirstHyper(size_t dimensions) {
  std::vector<double> logs(dimensions, std::log(0.4));
  logs.push_back(0);
  logs.push_back(std::log(1e-4));
  return logs;
}

// Which of the results the model is made of, when there are too many.
std::vector<size_t> Chosen(const std::vector<Known::Result>& results, size_t most) {
  std::vector<size_t> all(results.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (all.size() <= most) return all;
  const size_t latest = all.size() - most / 2;
  std::vector<size_t> chosen(all.begin() + static_cast<ptrdiff_t>(latest), all.end());
  all.resize(latest);
  std::ranges::stable_sort(all, {}, [&](size_t i) { return results[i].loss; });
  chosen.insert(chosen.end(), all.begin(), all.begin() + static_cast<ptrdiff_t>(most - most / 2));
  std::ranges::sort(chosen);
  return chosen;
}

MatrixXd RowsOf(const Layout& layout, const std::vector<const std::vector<double>*>& points) {
  MatrixXd at(static_cast<Eigen::Index>(points.size()), layout.columns());
  for (size_t i = 0; i < points.size(); ++i) {
    const std::vector<double> row = layout.RowOf(*points[i]);
    at.row(static_cast<Eigen::Index>(i)) =
        Eigen::Map<const VectorXd>(row.data(), layout.columns()).transpose();
  }
  return at;
}

Data DataOf(const Layout& layout, const std::vector<Known::Result>& results,
            const std::vector<size_t>& chosen) {
  const Eigen::Index n = static_cast<Eigen::Index>(chosen.size());
  std::vector<const std::vector<double>*> points;
  for (size_t i : chosen) points.push_back(results[i].at);
  Data data{RowsOf(layout, points), VectorXd(n)};
  std::vector<double> losses;
  for (size_t i : chosen) losses.push_back(results[i].loss);
  // What is very bad need not be known exactly: a cliff far away would flatten everything else.
  std::vector<double> sorted = losses;
  std::ranges::sort(sorted);
  const double median = sorted[sorted.size() / 2], best = sorted.front();
  const double ceiling = median + 2 * (median - best);
  for (Eigen::Index i = 0; i < n; ++i) {
    const double loss = losses[static_cast<size_t>(i)];
    data.y[i] = std::isfinite(ceiling) && ceiling > best ? std::min(loss, ceiling) : loss;
  }
  const double mean = data.y.mean();
  const double deviation = std::sqrt((data.y.array() - mean).square().mean());
  data.y = (data.y.array() - mean) / (deviation > 1e-12 ? deviation : 1);
  return data;
}

class Model {
 public:
  Model(Data data, const Hyper& hyper) : data_(std::move(data)), hyper_(hyper) { Factor(); }

  // Takes points for granted at their expected value.
  void Believe(const MatrixXd& at) {
    if (at.rows() == 0) return;
    const Eigen::Index n = data_.y.size(), more = at.rows();
    const VectorXd expected = Kernel(hyper_, at, data_.at) * alpha_;
    data_.at.conservativeResize(n + more, Eigen::NoChange);
    data_.at.bottomRows(more) = at;
    data_.y.conservativeResize(n + more);
    data_.y.tail(more) = expected;
    Factor();
  }

  const Data& data() const { return data_; }

  // Of each row, minus the log of the expected improvement.
  VectorXd Reluctance(const MatrixXd& at) const {
    const MatrixXd kernel = Kernel(hyper_, data_.at, at);
    const MatrixXd solved = cholesky_.matrixL().solve(kernel);
    const VectorXd mean = kernel.transpose() * alpha_;
    const VectorXd explained = solved.colwise().squaredNorm().transpose();
    VectorXd result(at.rows());
    for (Eigen::Index i = 0; i < at.rows(); ++i) {
      const double deviation = std::sqrt(std::max(hyper_.variance - explained[i], 1e-14));
      result[i] = -LogImprovement(mean[i], deviation).value;
    }
    return result;
  }

  double Reluctance(const std::vector<double>& x, std::vector<double>& gradient) const {
    const Eigen::Index n = data_.y.size(), dimensions = data_.at.cols();
    const VectorXd here = Eigen::Map<const VectorXd>(x.data(), dimensions);
    const MatrixXd apart = (-data_.at).rowwise() + here.transpose();
    const VectorXd r = (apart * hyper_.scale.asDiagonal()).rowwise().norm();
    VectorXd kernel(n), slope(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      kernel[i] = hyper_.variance * Matern(r[i]);
      slope[i] = hyper_.variance * MaternSlope(r[i]);
    }
    const VectorXd solved = cholesky_.matrixL().solve(kernel);
    const VectorXd weights = cholesky_.matrixU().solve(solved);
    const double mean = kernel.dot(alpha_);
    const double deviation = std::sqrt(std::max(hyper_.variance - solved.squaredNorm(), 1e-14));
    const Improvement improvement = LogImprovement(mean, deviation);
    const VectorXd scale2 = 2 * hyper_.scale.cwiseAbs2();
    const VectorXd mean_slope = scale2.cwiseProduct(apart.transpose() * slope.cwiseProduct(alpha_));
    const VectorXd deviation_slope =
        -scale2.cwiseProduct(apart.transpose() * slope.cwiseProduct(weights)) / deviation;
    for (Eigen::Index d = 0; d < dimensions; ++d) {
      gradient[static_cast<size_t>(d)] =
          -(improvement.by_mean * mean_slope[d] + improvement.by_deviation * deviation_slope[d]);
    }
    return -improvement.value;
  }

 private:
  struct Improvement {
    double value = 0;  // the logarithm
    double by_mean = 0;
    double by_deviation = 0;
  };

  void Factor() {
    MatrixXd covariance = Kernel(hyper_, data_.at, data_.at);
    double jitter = hyper_.noise + 1e-8;
    do {
      covariance.diagonal().array() = hyper_.variance + jitter;
      cholesky_.compute(covariance);
      jitter *= 10;
    } while (cholesky_.info() != Eigen::Success && jitter < 1);
    alpha_ = cholesky_.solve(data_.y);
    // The best that is believed, so that one lucky measurement is not chased.
    best_ = (data_.y - jitter / 10 * alpha_).minCoeff();
  }

  Improvement LogImprovement(double mean, double deviation) const {
    const double u = (best_ - mean) / deviation;
    const double density = 0.3989422804014327 * std::exp(-0.5 * u * u);
    const double below = 0.5 * std::erfc(-u * 0.7071067811865476);
    double log_gain = 0, ratio = 0;  // of h(u) = density + u below; below / h
    if (u > -6) {
      const double h = std::max(density + u * below, 1e-300);
      log_gain = std::log(h);
      ratio = below / h;
    } else {
      const double u2 = u * u;
      log_gain = -0.5 * u2 - 0.9189385332046727 - std::log(u2) + std::log1p(-3 / u2);
      ratio = -u * (1 + 2 / u2);
    }
    Improvement improvement;
    improvement.value = std::log(deviation) + log_gain;
    improvement.by_mean = -ratio / deviation;
    improvement.by_deviation = (1 - ratio * u) / deviation;
    return improvement;
  }

  Data data_;
  Hyper hyper_;
  Eigen::LLT<MatrixXd> cholesky_;
  VectorXd alpha_;
  double best_ = 0;
};

// Often while there is little to go on, seldom later: a fit costs more than a suggestion.
bool IsFitted(int number) {
  if (number < 30) return true;
  if (number < 60) return number % 2 == 0;
  return number < 120 ? number % 5 == 0 : number % 20 == 0;
}

void Fit(const Settings& settings, const Known& known, int number, GpMemory& memory) {
  memory.fitted = number;
  if (known.results.size() < kStartup) return;
  const bool first = memory.hyper.empty();
  if (first) memory.hyper = FirstHyper(settings.space.size());
  const Layout layout(settings.space);
  const Data data = DataOf(layout, known.results, Chosen(known.results, kMostFitted));
  const auto function = [&](const std::vector<double>& x, std::vector<double>& gradient) {
    return Unlikeliness(layout, data, x, gradient);
  };
  memory.hyper = Minimize(function, memory.hyper, -16, 5, first ? 40 : 12);
}

// Anywhere, and around the best. Every parameter has a value, which counts where it is active.
std::vector<std::vector<double>> Candidates(const Layout& layout, const std::vector<double>& best,
                                            Rng& rng) {
  std::vector<std::vector<double>> candidates;
  for (int i = 0; i < kScattered + kNear; ++i) {
    const double width = std::pow(10, -1 - 2 * rng.Uniform());
    std::vector<double> units(best.size());
    for (size_t p = 0; p < units.size(); ++p) {
      double unit = 0;
      if (i < kScattered || best[p] == kInactive) {
        unit = rng.Uniform();
      } else if (layout.IsListed(p)) {
        const double anywhere = rng.Uniform();
        unit = rng.Uniform() < kStay ? best[p] : anywhere;
      } else {
        unit = std::clamp(best[p] + width * rng.Normal(), 0.0, 1.0);
      }
      units[p] = layout.IsFree(p) ? unit : layout.Snapped(p, unit);
    }
    candidates.push_back(std::move(units));
  }
  return candidates;
}

// Of candidates, each with a value for every parameter, those of inactive ones included.
MatrixXd CandidateRows(const Layout& layout, const std::vector<std::vector<double>>& candidates) {
  MatrixXd at(static_cast<Eigen::Index>(candidates.size()), layout.columns());
  for (size_t i = 0; i < candidates.size(); ++i) {
    std::vector<double> units = candidates[i];
    DeactivateUnits(layout.space(), units);
    const std::vector<double> row = layout.RowOf(units);
    at.row(static_cast<Eigen::Index>(i)) =
        Eigen::Map<const VectorXd>(row.data(), at.cols()).transpose();
  }
  return at;
}

// Climbs from a candidate: along the slope in what is free, then by single changes of what is
// listed.
class Climber {
 public:
  Climber(const Layout& layout, const Model& model) : layout_(layout), model_(model) {}

  std::vector<double> Climb(std::vector<double> units, double& value) const {
    Slide(units, value);
    for (int round = 0; round < kRounds && Change(units, value); ++round) Slide(units, value);
    return units;
  }

 private:
  static constexpr int kRounds = 4;

  void Slide(std::vector<double>& units, double& value) const {
    std::vector<double> active = units;
    DeactivateUnits(layout_.space(), active);
    std::vector<size_t> free;
    std::vector<double> start, slopes(static_cast<size_t>(layout_.columns()));
    for (size_t p = 0; p < units.size(); ++p) {
      if (!layout_.IsFree(p) || active[p] == kInactive) continue;
      free.push_back(p);
      start.push_back(units[p]);
    }
    std::vector<double> row = layout_.RowOf(active);
    const auto function = [&](const std::vector<double>& x, std::vector<double>& gradient) {
      for (size_t i = 0; i < free.size(); ++i) layout_.Set(row.data(), free[i], x[i]);
      const double reluctance = model_.Reluctance(row, slopes);
      for (size_t i = 0; i < free.size(); ++i) gradient[i] = layout_.Slope(slopes, free[i], x[i]);
      return reluctance;
    };
    const std::vector<double> end = Minimize(function, std::move(start), 0, 1, 20, &value);
    for (size_t i = 0; i < free.size(); ++i) units[free[i]] = end[i];
  }

  // To the best that differs in one listed parameter, if it is better.
  bool Change(std::vector<double>& units, double& value) const {
    std::vector<double> active = units;
    DeactivateUnits(layout_.space(), active);
    std::vector<std::vector<double>> others;
    for (size_t p = 0; p < units.size(); ++p) {
      if (!layout_.IsListed(p) || active[p] == kInactive) continue;
      const size_t cells = Cells(layout_.space()[p]);
      for (size_t cell = 0; cell < cells; ++cell) {
        const double unit =
            layout_.Snapped(p, (static_cast<double>(cell) + 0.5) / static_cast<double>(cells));
        if (unit == units[p]) continue;
        others.push_back(units);
        others.back()[p] = unit;
      }
    }
    if (others.empty()) return false;
    Eigen::Index best = 0;
    const double least = model_.Reluctance(CandidateRows(layout_, others)).minCoeff(&best);
    if (!(least < value - 1e-9)) return false;
    units = others[static_cast<size_t>(best)];
    value = least;
    return true;
  }

  const Layout& layout_;
  const Model& model_;
};

// Whether a result has this point, or one that differs by less than kHardly in each parameter.
bool IsRefined(const Known& known, const std::vector<double>& units) {
  return std::ranges::any_of(known.results, [&](const Known::Result& result) {
    return std::ranges::equal(*result.at, units, [](double a, double b) {
      return a == b || std::fabs(a - b) < kHardly;  // infinite if only one is inactive
    });
  });
}

}  // namespace

std::vector<double> GpPoint(const Settings& settings, const std::vector<Trial>& trials, int number,
                            GpMemory& memory) {
  for (int n = memory.fitted + 1; n <= number; ++n) {
    if (IsFitted(n)) Fit(settings, WhatIsKnown(settings, trials, n), n, memory);
  }
  const Known known = WhatIsKnown(settings, trials, number);
  if (known.results.size() < kStartup || memory.hyper.empty()) return SpreadPoint(settings, number);
  const Layout layout(settings.space);
  const std::vector<size_t> chosen = Chosen(known.results, kMostPoints);
  Model model(DataOf(layout, known.results, chosen), Hyper(layout, memory.hyper));
  model.Believe(RowsOf(layout, known.pending));
  // Believed ones may be the best, too.
  Eigen::Index lowest = 0;
  model.data().y.minCoeff(&lowest);
  const auto at = static_cast<size_t>(lowest);
  const std::vector<double>& best_known =
      at < chosen.size() ? *known.results[chosen[at]].at : *known.pending[at - chosen.size()];

  Rng rng(settings.seed, static_cast<uint64_t>(number), kDraw);
  const auto candidates = Candidates(layout, best_known, rng);
  const VectorXd reluctance = model.Reluctance(CandidateRows(layout, candidates));
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, {}, [&](size_t i) { return reluctance[static_cast<Eigen::Index>(i)]; });

  const Climber climber(layout, model);
  std::vector<double> best;
  double least = 0;
  for (int climb = 0; climb < kClimbs; ++climb) {
    double value = 0;
    const std::vector<double> units =
        layout.Actual(climber.Climb(candidates[order[static_cast<size_t>(climb)]], value));
    if ((best.empty() || value < least) && !IsTried(known, units)) {
      least = value;
      best = units;
    }
  }
  // All of them were tried: the most promising that was not.
  for (size_t i = 0; best.empty() && i < order.size(); ++i) {
    const std::vector<double> units = layout.Actual(candidates[order[i]]);
    if (!IsTried(known, units)) best = units;
  }
  if (best.empty()) return RandomPoint(settings, number);
  if (IsConditional(settings.space) && IsRefined(known, best)) return SpreadPoint(settings, number);
  return best;
}

}  // namespace sweep
