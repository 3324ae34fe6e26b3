#include "backend/sim/agenda.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace backend::sim {

bool Agenda::Later(const Entry& a, const Entry& b) {
  return std::tie(a.at, a.tie, a.number) > std::tie(b.at, b.tie, b.number);
}

void Agenda::At(base::Time when, Deed deed) {
  heap_.push_back({std::max(when, now_), random_.Next(), ++number_, std::move(deed)});
  std::push_heap(heap_.begin(), heap_.end(), Later);
}

std::optional<base::Time> Agenda::next() const {
  if (heap_.empty()) return std::nullopt;
  return heap_.front().at;
}

bool Agenda::Step() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), Later);
  Entry entry = std::move(heap_.back());
  heap_.pop_back();
  now_ = entry.at;
  entry.deed();
  return true;
}

void Agenda::RunUntil(base::Time until) {
  while (next() && *next() <= until) Step();
  now_ = std::max(now_, until);
}

}  // namespace backend::sim
