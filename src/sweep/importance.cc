#include "sweep/importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace sweep {
namespace {

constexpr size_t kLeast = 6;  // trials

struct Sample {
  const Trial* trial;
  double rank;
};

// The value's group: itself where there are few, else one of equally filled ones.
std::vector<size_t> GroupsOf(const Parameter& p, const std::vector<Sample>& samples, size_t index) {
  const size_t most = std::max<size_t>(2, static_cast<size_t>(std::sqrt(samples.size())));
  std::vector<size_t> groups(samples.size());
  if (const size_t cells = Cells(p); cells > 0 && (cells <= most || p.kind == Kind::kChoice)) {
    for (size_t i = 0; i < samples.size(); ++i) {
      groups[i] =
          static_cast<size_t>(samples[i].trial->point[index] - (p.kind == Kind::kInt ? p.low : 0));
    }
    return groups;
  }
  std::vector<size_t> order(samples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return samples[i].trial->point[index]; });
  const size_t count = std::min<size_t>(most, 8);
  for (size_t i = 0; i < order.size(); ++i) {
    // Equal values are never parted.
    const bool same =
        i > 0 && samples[order[i]].trial->point[index] == samples[order[i - 1]].trial->point[index];
    groups[order[i]] = same ? groups[order[i - 1]] : i * count / order.size();
  }
  return groups;
}

// The sum of squares around the mean rank.
double Spread(const std::vector<Sample>& samples) {
  double mean = 0, sum = 0;
  for (const Sample& sample : samples) mean += sample.rank / static_cast<double>(samples.size());
  for (const Sample& sample : samples) sum += (sample.rank - mean) * (sample.rank - mean);
  return sum;
}

double ShareExplained(const std::vector<Sample>& samples, const std::vector<size_t>& groups) {
  struct Sum {
    double sum = 0;
    double count = 0;
  };
  std::map<size_t, Sum> sums;
  double mean = 0, total = 0, between = 0;
  for (const Sample& sample : samples) mean += sample.rank;
  const double n = static_cast<double>(samples.size());
  mean /= n;
  for (size_t i = 0; i < samples.size(); ++i) {
    sums[groups[i]].sum += samples[i].rank;
    sums[groups[i]].count += 1;
    total += (samples[i].rank - mean) * (samples[i].rank - mean);
  }
  for (const auto& [group, sum] : sums) {
    between += sum.count * std::pow(sum.sum / sum.count - mean, 2);
  }
  const double k = static_cast<double>(sums.size());
  if (total <= 0 || n <= k || k < 2) return 0;
  const double unexplained = (1 - between / total) * (n - 1) / (n - k);
  return std::max(0.0, 1 - unexplained);
}

}  // namespace

std::vector<double> Importance(const Settings& settings, const std::vector<Trial>& trials) {
  std::vector<Sample> samples;
  for (const Trial& trial : trials) {
    const bool counts = trial.state == State::kComplete || trial.state == State::kPruned;
    if (counts && trial.value && !std::isnan(*trial.value)) samples.push_back({&trial, 0});
  }
  if (samples.size() < kLeast) return {};
  const auto key = [&](const Sample& sample) {
    const Trial& trial = *sample.trial;
    const bool pruned = trial.state == State::kPruned;
    return std::tuple(pruned, pruned ? -trial.reports : 0, Loss(settings, *trial.value));
  };
  std::ranges::stable_sort(samples, {}, key);
  for (size_t i = 0; i < samples.size();) {
    size_t end = i;
    while (end < samples.size() && key(samples[end]) == key(samples[i])) ++end;
    for (size_t tied = i; tied < end; ++tied)
      samples[tied].rank = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  std::vector<double> shares;
  for (size_t p = 0; p < settings.space.size(); ++p) {
    // Only trials in which it is active say anything about it; it matters for them alone.
    std::vector<Sample> active = samples;
    std::erase_if(active, [&](const Sample& s) { return s.trial->point[p] == kInactive; });
    const bool enough = active.size() >= kLeast;
    const double part = enough ? Spread(active) / Spread(samples) : 0;
    shares.push_back(
        part > 0 ? part * ShareExplained(active, GroupsOf(settings.space[p], active, p)) : 0);
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum <= 0) return {};
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace sweep
