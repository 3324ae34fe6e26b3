#include "events/series.h"

#include <algorithm>
#include <cmath>

namespace events {
namespace {

// One place is for the latest. Even, so that after thinning the next one falls on the new stride.
constexpr size_t kMaxKept = Series::kMaxPoints - 2;

}  // namespace

bool Series::Add(int file, const Point& point) {
  if (file < file_) return false;
  file_ = file;
  if (latest_ && point.step <= latest_->step) Purge(point.step);

  latest_ = point;
  ++count_;
  Weigh(point);
  if (--turn_ < 0) {
    if (kept_.size() == kMaxKept) Thin();
    kept_.push_back(point);
    turn_ = stride_ - 1;
  }
  return true;
}

void Series::Restart(int file, int64_t step) {
  if (file >= file_) Purge(step);
}

// Keeps the first, third, fifth...
void Series::Thin() {
  size_t to = 0;
  for (size_t from = 0; from < kept_.size(); from += 2) kept_[to++] = kept_[from];
  kept_.resize(to);
  stride_ *= 2;
}

void Series::Weigh(const Point& point) {
  if (std::isnan(point.value)) return;
  if (!least_ || point.value < least_->value) least_ = point;
  if (!greatest_ || point.value > greatest_->value) greatest_ = point;
}

void Series::Purge(int64_t step) {
  if (!latest_ || latest_->step < step) return;
  const auto cut = std::ranges::lower_bound(kept_, step, {}, &Point::step);
  kept_.erase(cut, kept_.end());
  turn_ = 0;
  latest_ = kept_.empty() ? std::nullopt : std::optional(kept_.back());
  const bool least_gone = least_ && least_->step >= step;
  const bool greatest_gone = greatest_ && greatest_->step >= step;
  if (least_gone) least_.reset();
  if (greatest_gone) greatest_.reset();
  if (least_gone || greatest_gone) std::ranges::for_each(kept_, [this](auto& p) { Weigh(p); });
}

std::vector<Point> Series::Points() const {
  std::vector<Point> points = kept_;
  if (latest_ && (points.empty() || points.back().step != latest_->step)) {
    points.push_back(*latest_);
  }
  return points;
}

}  // namespace events
