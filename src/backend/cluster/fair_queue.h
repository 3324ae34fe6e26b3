// A queue with one lane for each namespace. Lanes take turns, so that a full lane does not hold up
// another. Within a lane, items leave by their priority.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace backend::cluster {

enum class Priority { kFirst, kNormal, kLast };

template <typename Item>
class FairQueue {
 public:
  void Push(const std::string& lane, Item item, Priority priority = Priority::kNormal) {
    lanes_[lane].of(priority).push_back(std::move(item));
    ++size_;
  }

  std::optional<Item> Pop() {
    return PopFrom([](const std::string&) { return true; });
  }

  // Only from lanes for which `open(lane)` holds.
  template <typename Open>
  std::optional<Item> PopFrom(Open open) {
    const auto is_open = [&](const auto& entry) { return open(entry.first); };
    auto lane = std::find_if(lanes_.upper_bound(last_), lanes_.end(), is_open);
    if (lane == lanes_.end()) lane = std::find_if(lanes_.begin(), lanes_.end(), is_open);
    if (lane == lanes_.end()) return std::nullopt;
    last_ = lane->first;
    std::deque<Item>& items = lane->second.next();
    std::optional<Item> item = std::move(items.front());
    items.pop_front();
    if (lane->second.size() == 0) lanes_.erase(lane);
    --size_;
    return item;
  }

  template <typename Open>
  bool HasAnyFrom(Open open) const {
    return std::ranges::any_of(lanes_, [&](const auto& entry) { return open(entry.first); });
  }

  size_t size() const { return size_; }
  size_t size(const std::string& lane) const {
    const auto found = lanes_.find(lane);
    return found == lanes_.end() ? 0 : found->second.size();
  }
  size_t size_first(const std::string& lane) const {
    const auto found = lanes_.find(lane);
    return found == lanes_.end() ? 0 : found->second.of(Priority::kFirst).size();
  }
  bool empty() const { return size_ == 0; }

 private:
  struct Lane {
    std::array<std::deque<Item>, 3> items;  // by priority
    std::deque<Item>& of(Priority p) { return items[static_cast<size_t>(p)]; }
    const std::deque<Item>& of(Priority p) const { return items[static_cast<size_t>(p)]; }
    std::deque<Item>& next() {
      return *std::ranges::find_if(items, [](const auto& queue) { return !queue.empty(); });
    }
    size_t size() const {
      size_t sum = 0;
      for (const auto& queue : items) sum += queue.size();
      return sum;
    }
  };
  std::map<std::string, Lane> lanes_;  // none empty
  std::string last_;
  size_t size_ = 0;
};

}  // namespace backend::cluster
