// A map that holds a bounded number of entries and forgets the one that was not used for longest.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace kube {

template <typename Value>
class Lru {
 public:
  explicit Lru(size_t most) : most_(most) {}

  // nullptr when there is none. Finding an entry is using it.
  Value* Find(const std::string& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  // The entry of this key, made if there is none. To make room, the oldest for which `may_go` is
  // true is forgotten; nullptr when there is no such one.
  template <typename MayGo>
  Value* FindOrMake(const std::string& key, MayGo may_go) {
    if (Value* found = Find(key)) return found;
    if (entries_.size() >= most_ && !ForgetOne(may_go)) return nullptr;
    entries_.emplace_front(key, Value());
    index_.emplace(key, entries_.begin());
    return &entries_.front().second;
  }
  Value& FindOrMake(const std::string& key) {
    return *FindOrMake(key, [](const Value&) { return true; });
  }

  size_t size() const { return entries_.size(); }

 private:
  template <typename MayGo>
  bool ForgetOne(MayGo may_go) {
    for (auto entry = entries_.end(); entry != entries_.begin();) {
      --entry;
      if (!may_go(entry->second)) continue;
      index_.erase(entry->first);
      entries_.erase(entry);
      return true;
    }
    return false;
  }

  size_t most_;
  std::list<std::pair<std::string, Value>> entries_;  // the last used first
  std::unordered_map<std::string, typename decltype(entries_)::iterator> index_;
};

}  // namespace kube
