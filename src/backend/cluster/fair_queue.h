// A queue of queues, one a lane: whose turn it is goes round, so that a full lane does not hold up
// another.
#pragma once

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
    if (lanes_.empty()) return std::nullopt;
    auto lane = lanes_.upper_bound(last_);
    if (lane == lanes_.end()) lane = lanes_.begin();
    last_ = lane->first;
    std::optional<Item> item = std::move(lane->second.front());
    lane->second.pop_front();
    if (lane->second.empty()) lanes_.erase(lane);
    --size_;
    return item;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::map<std::string, std::deque<Item>> lanes_;  // none empty
  std::string last_;
  size_t size_ = 0;
};

}  // namespace backend::cluster
