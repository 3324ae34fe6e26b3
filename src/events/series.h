// One scalar over the steps of a run: the curve, thinned to a bound, and what is asked of it.
//
// However long the training, a series keeps at most kMaxPoints points: when they are reached every
// second one goes and from then on only every second new one is kept. First and last are always
// exact, and so are latest, least and greatest.
//
// A job that starts again from a checkpoint writes steps again, into a new event file. What it
// wrote before at those steps is void: the first step that a later file gives takes all points at
// or beyond it away (as TensorBoard's purge of orphaned data). A file that was overtaken so has
// nothing more to say about this series. Steps that go back within one file mean the same.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace events {

struct Point {
  int64_t step = 0;
  double wall_time = 0;  // seconds since 1970
  double value = 0;

  bool operator==(const Point&) const = default;
};

class Series {
 public:
  static constexpr size_t kMaxPoints = 1024;

  // A value that file number `file` of the run holds; a later file has a higher number. False when
  // the file was overtaken by a later one.
  bool Add(int file, const Point& point);
  // File number `file` says that training began again at step, whatever it has to say later.
  void Restart(int file, int64_t step);

  // In order of steps, strictly rising; the last is the latest.
  std::vector<Point> Points() const;
  const std::optional<Point>& latest() const { return latest_; }
  // The least and greatest of all values seen, not of the points kept. Not a number counts for
  // neither. After a purge that took them away: of the points kept.
  const std::optional<Point>& least() const { return least_; }
  const std::optional<Point>& greatest() const { return greatest_; }
  // How many values were added since the first, those purged included.
  int64_t count() const { return count_; }

 private:
  void Purge(int64_t step);
  void Thin();
  void Weigh(const Point& point);

  int file_ = -1;
  std::vector<Point> kept_;  // the latest is here only if its turn has come
  int64_t stride_ = 1;
  int64_t turn_ = 0;  // values to pass over before the next is kept
  int64_t count_ = 0;
  std::optional<Point> latest_;
  std::optional<Point> least_;
  std::optional<Point> greatest_;
};

}  // namespace events
