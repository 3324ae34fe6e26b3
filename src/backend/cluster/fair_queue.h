// A queue of queues, one a lane: whose turn it is goes round, so that a full lane does not hold up
// another.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace backend::cluster {

template <typename Item>
class FairQueue {
 public:
  void Push(const std::string& lane, Item item) {
    lanes_[lane].push_back(std::move(item));
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
    std::optional<Item> item = std::move(lane->second.front());
    lane->second.pop_front();
    if (lane->second.empty()) lanes_.erase(lane);
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
  bool empty() const { return size_ == 0; }

 private:
  std::map<std::string, std::deque<Item>> lanes_;  // none empty
  std::string last_;
  size_t size_ = 0;
};

}  // namespace backend::cluster
