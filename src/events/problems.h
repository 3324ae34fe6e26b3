// What went wrong and was survived, each text told once.
//
// A reader that polls meets the same unreadable file every second; whoever shows its problems wants
// them once. Both what waits to be told and what is remembered as told are bounded.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace events {

class Problems {
 public:
  void Report(std::string text) {
    if (told_.size() >= kMaxTold) return;
    const auto [it, is_new] = told_.insert(std::move(text));
    if (is_new) waiting_.push_back(*it);
  }

  // Those reported since the last time.
  std::vector<std::string> Take() { return std::exchange(waiting_, {}); }

 private:
  static constexpr size_t kMaxTold = 1000;

  std::set<std::string> told_;
  std::vector<std::string> waiting_;
};

}  // namespace events
