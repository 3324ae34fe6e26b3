// What others may know of the ledger: standings, lists, and who is silent.

#include <algorithm>
#include <limits>

#include "ledger/ledger.h"

namespace ledger {
namespace {

base::Time TimeOf(int64_t micros) { return base::Time(base::Duration(micros)); }

template <typename Value>
int64_t OfEpoch(const std::map<Shard, Value>& shards, int64_t epoch) {
  return std::distance(shards.lower_bound({epoch, 0}), shards.lower_bound({epoch + 1, 0}));
}

}  // namespace

std::vector<int32_t> Ledger::LeasesOf(const std::string& name, std::string_view set_name) const {
  std::vector<int32_t> leases;
  const Member* member = FindMember(name);
  const Set* set = FindSet(set_name);
  if (!member || !set) return leases;
  for (const int32_t id : member->leases) {
    if (out_.at(id).set == IndexOf(*set)) leases.push_back(id);
  }
  return leases;
}

Lease Ledger::LeaseAt(int32_t id) const { return LeaseFrom(id, out_.at(id)); }

Ledger::Holder Ledger::HolderOf(int32_t lease) const {
  const auto out = out_.find(lease);
  if (out == out_.end()) return {};
  return {.member = members_[out->second.member].name, .set = sets_[out->second.set].params.name};
}

bool Ledger::IsOver(int32_t lease) const {
  return !out_.contains(lease) && !taken_back_.contains(lease);
}

Standing Ledger::Look(std::string_view name, const std::string& member_name) const {
  Standing standing;
  if (const Member* member = FindMember(member_name)) {
    standing.held = static_cast<int64_t>(member->leases.size());
  }
  const Set* set = FindSet(name);
  if (!set) return standing;
  standing.known = true;
  standing.complete = IsComplete(*set);
  standing.todo = std::min<int64_t>(static_cast<int64_t>(set->due.size()) + Fresh(*set),
                                    std::numeric_limits<int32_t>::max());
  standing.doing = static_cast<int64_t>(set->doing.size());
  standing.records_left = RecordsLeft(*set);
  standing.records_total = RecordsTotal(*set);
  standing.epoch = static_cast<int32_t>(
      std::min<int64_t>(set->cursor.epoch, std::numeric_limits<int32_t>::max()));
  standing.epochs = set->params.epochs;
  return standing;
}

bool Ledger::Complete() const {
  bool any = false;
  for (const Set& set : sets_) {
    if (set.params.epochs == 0) continue;
    if (!IsComplete(set)) return false;
    any = true;
  }
  return any;
}

std::vector<std::string> Ledger::Misled() const {
  std::vector<std::string> names;
  if (Complete()) return names;
  for (const Member& member : members_) {
    if (member.whereabouts == Whereabouts::kGone) continue;
    const bool told_wrong =
        std::ranges::any_of(member.told_end, [&](uint32_t set) { return !IsComplete(sets_[set]); });
    if (member.cut || told_wrong) names.push_back(member.name);
  }
  return names;
}

std::vector<SetView> Ledger::Sets() const {
  std::vector<SetView> views;
  for (const Set& set : sets_) {
    SetView& view = views.emplace_back();
    const int64_t epoch = set.cursor.epoch;
    view.params = set.params;
    view.epoch = epoch;
    const int64_t due = OfEpoch(set.due, epoch);
    view.doing = OfEpoch(set.doing, epoch);
    view.todo = set.shards - set.cursor.position + due;
    view.done = set.cursor.position - due - view.doing - OfEpoch(set.quarantined, epoch);
    view.records_done = Capped(set.records_done, std::numeric_limits<int64_t>::max());
    view.records_left = RecordsLeft(set);
    view.records_total = RecordsTotal(set);
    view.complete = IsComplete(set);
  }
  return views;
}

std::vector<MemberView> Ledger::Members() const {
  std::vector<MemberView> views;
  for (const Member& member : members_) {
    MemberView& view = views.emplace_back();
    view.name = member.name;
    view.number = member.number;
    view.here = member.whereabouts == Whereabouts::kHere;
    view.doing = static_cast<int64_t>(member.leases.size());
    view.done = member.done;
    view.records_done = member.records_done;
    view.last = TimeOf(member.heard);
    // From when the oldest of them was handed out to when the newest was reported.
    double records = 0;
    int64_t from = std::numeric_limits<int64_t>::max();
    int64_t to = std::numeric_limits<int64_t>::min();
    for (const Recent& recent : member.recent) {
      records += static_cast<double>(recent.records);
      from = std::min(from, recent.when - recent.took);
      to = std::max(to, recent.when);
    }
    if (records > 0 && to > from) {
      view.rate = records * 1e6 / static_cast<double>(to - from);
    }
  }
  return views;
}

std::vector<QuarantineView> Ledger::Quarantined() const {
  std::vector<QuarantineView> views;
  for (const Set& set : sets_) {
    for (const auto& [shard, error] : set.quarantined) {
      const int64_t start = IndexAt(set, shard) * set.params.shard_size;
      views.push_back({set.params.name, shard.epoch, start, start + RecordsOf(set, shard), error});
    }
  }
  return views;
}

size_t Ledger::Held() const {
  size_t held = sets_.size() + members_.size() + out_.size() + taken_back_.size();
  for (const Set& set : sets_) {
    held += set.due.size() + set.doing.size() + set.quarantined.size() + set.taken_back.size() +
            set.kept.size();
  }
  for (const Member& member : members_) {
    held += member.leases.size() + member.told_end.size() + member.recent.size();
  }
  return held;
}

// Silence.

std::map<uint32_t, int64_t> Ledger::SilenceBySet() const {
  std::map<uint32_t, int64_t> slowest;
  std::map<uint32_t, std::vector<int64_t>> took;
  for (const Member& member : members_) {
    took.clear();
    for (const Recent& recent : member.recent) took[recent.set].push_back(recent.took);
    for (auto& [set, times] : took) {
      const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
      std::ranges::nth_element(times, middle);
      slowest[set] = std::max(slowest[set], *middle);
    }
  }
  for (auto& [set, time] : slowest) {
    constexpr int64_t kMost = (int64_t{1} << 60) / kSilentTimes;
    time = std::max(kLeastSilence.count(), kSilentTimes * std::min(time, kMost));
  }
  return slowest;
}

int64_t Ledger::SilenceOf(const Member& member, const std::map<uint32_t, int64_t>& by_set) const {
  int64_t silence = 0;
  for (const int32_t id : member.leases) {
    const auto found = by_set.find(out_.at(id).set);
    if (found == by_set.end()) return std::numeric_limits<int64_t>::max();
    silence = std::max(silence, found->second);
  }
  return silence;
}

std::vector<Ledger::Expired> Ledger::Expire(base::Time now, Batch& batch) {
  std::vector<Expired> expired;
  const int64_t micros = now.time_since_epoch().count();
  const auto by_set = SilenceBySet();
  for (uint32_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (member.leases.empty()) continue;
    const int64_t bound = SilenceOf(member, by_set);
    if (bound == std::numeric_limits<int64_t>::max() || micros - member.heard < bound) continue;
    expired.push_back({member.name, static_cast<int64_t>(member.leases.size()),
                       base::Duration(micros - member.heard)});
    Commit({.kind = EntryKind::kExpire, .member = i, .time = micros}, batch);
  }
  return expired;
}

base::Time Ledger::NextExpiry() const {
  base::Time next = base::Time::max();
  const auto by_set = SilenceBySet();
  for (const Member& member : members_) {
    if (member.leases.empty()) continue;
    const int64_t bound = SilenceOf(member, by_set);
    if (bound == std::numeric_limits<int64_t>::max()) continue;
    next = std::min(next, TimeOf(member.heard + bound));
  }
  return next;
}

void Ledger::Heard(const std::string& name, base::Time now) {
  const auto found = member_index_.find(name);
  if (found == member_index_.end()) return;
  Member& member = members_[found->second];
  member.heard = std::max(member.heard, now.time_since_epoch().count());
}

}  // namespace ledger
