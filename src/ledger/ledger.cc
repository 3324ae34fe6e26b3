// Every change goes one way: a public function decides what happens and says it in an entry;
// Apply changes the state by the entry alone. Replaying calls the same Apply, so a state can be
// reached in no other way than the log tells. Apply trusts nothing: a log that decodes may still
// say what cannot be.

#include "ledger/ledger.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"

namespace ledger {
namespace {

constexpr size_t kMostError = 256;

int64_t Micros(base::Time time) { return time.time_since_epoch().count(); }

std::unexpected<base::Error> Unfit(std::string why) { return base::Invalid(std::move(why)); }

}  // namespace

const Ledger::Set* Ledger::FindSet(std::string_view name) const {
  const auto found = std::ranges::find(
      sets_, name, [](const Set& set) -> std::string_view { return set.params.name; });
  return found == sets_.end() ? nullptr : &*found;
}

const Ledger::Member* Ledger::FindMember(const std::string& name) const {
  const auto found = member_index_.find(name);
  return found == member_index_.end() ? nullptr : &members_[found->second];
}

// Deciding.

void Ledger::Commit(const Entry& entry, Batch& batch) {
  CHECK(Apply(entry).has_value());
  PutEntry(batch.entries, entry);
}

base::Result<Registered> Ledger::Register(const SetParams& params, Batch& batch) {
  if (std::string problem = ProblemWith(params); !problem.empty()) return base::Invalid(problem);
  if (const Set* set = FindSet(params.name)) {
    return set->params == params ? Registered::kSame : Registered::kConflict;
  }
  if (sets_.size() >= kMostSets) return base::Invalid("there are too many data sets");
  Commit({.kind = EntryKind::kRegister, .params = params}, batch);
  return Registered::kNew;
}

void Ledger::Join(const std::string& name, int32_t number, base::Time now, Batch& batch) {
  const Member* member = FindMember(name);
  if (member && member->whereabouts == Whereabouts::kHere) return;
  Commit({.kind = EntryKind::kJoin, .name = name, .number = number, .time = Micros(now)}, batch);
}

Ledger::Left Ledger::Leave(const std::string& name, bool succeeded, base::Time now, Batch& batch) {
  const Member* member = FindMember(name);
  if (!member || member->whereabouts != Whereabouts::kHere) return {};
  Left left;
  for (const int32_t id : member->leases) {
    const bool assumed = succeeded && member->told_end.contains(out_.at(id).set);
    ++(assumed ? left.assumed : left.returned);
  }
  Commit({.kind = EntryKind::kLeave,
          .member = IndexOf(*member),
          .time = Micros(now),
          .succeeded = succeeded},
         batch);
  return left;
}

std::vector<Lease> Ledger::Take(std::string_view name, const std::string& member_name, size_t most,
                                base::Time now, Batch& batch) {
  const Set* set = FindSet(name);
  const Member* member = FindMember(member_name);
  if (!set || !member || member->whereabouts != Whereabouts::kHere) return {};
  most = std::min(most, kMostTaken);
  Entry entry{.kind = EntryKind::kTake,
              .set = IndexOf(*set),
              .member = IndexOf(*member),
              .time = Micros(now)};
  for (auto due = set->due.begin(); due != set->due.end() && entry.due.size() < most; ++due) {
    entry.due.push_back(due->first);
  }
  // Of a set with a barrier, nobody gets what is due and the next epoch in one call: see Fresh.
  entry.fresh = static_cast<uint32_t>(
      std::min<uint64_t>(most - entry.due.size(), static_cast<uint64_t>(Fresh(*set))));
  if (entry.due.empty() && entry.fresh == 0) return {};
  Commit(entry, batch);
  std::vector<Lease> leases;
  leases.reserve(given_.size());
  for (const int32_t id : given_) leases.push_back(LeaseFrom(id, out_.at(id)));
  return leases;
}

Reported Ledger::Report(int32_t lease, const std::string& error, base::Time now, Batch& batch) {
  Entry entry{.kind = EntryKind::kDone, .lease = lease, .time = Micros(now)};
  const auto out = out_.find(lease);
  if (out != out_.end()) {
    if (error.empty()) {
      Commit(entry, batch);
      return Reported::kDone;
    }
    const bool last = out->second.errors + 1 >= kMostErrors;
    entry.kind = EntryKind::kFailed;
    entry.error = base::OneLine(base::CleanUtf8(error), kMostError);
    Commit(entry, batch);
    return last ? Reported::kQuarantined : Reported::kReturned;
  }
  if (lease < 1 || (!wrapped_ && lease >= next_id_)) return Reported::kUnknown;
  if (!error.empty()) return Reported::kDouble;
  if (taken_back_.contains(lease)) {
    Commit(entry, batch);
    return Reported::kLate;
  }
  entry.kind = EntryKind::kDouble;
  Commit(entry, batch);
  return Reported::kDouble;
}

bool Ledger::GiveBack(int32_t lease, base::Time now, Batch& batch) {
  if (!out_.contains(lease)) return false;
  Commit({.kind = EntryKind::kGiveBack, .lease = lease, .time = Micros(now)}, batch);
  return true;
}

void Ledger::TellEnd(const std::string& name, std::string_view set_name, Batch& batch) {
  const Member* member = FindMember(name);
  const Set* set = FindSet(set_name);
  if (!member || !set || member->told_end.contains(IndexOf(*set))) return;
  Commit({.kind = EntryKind::kTellEnd, .set = IndexOf(*set), .member = IndexOf(*member)}, batch);
}

void Ledger::Cut(const std::string& name, Batch& batch) {
  const Member* member = FindMember(name);
  if (!member || member->cut || member->whereabouts != Whereabouts::kHere) return;
  Commit({.kind = EntryKind::kCut, .member = IndexOf(*member)}, batch);
}

void Ledger::Away(base::Time now, Batch& batch) {
  if (members_.empty()) return;
  Commit({.kind = EntryKind::kAway, .time = Micros(now)}, batch);
}

bool Ledger::Reset(std::string_view name, Batch& batch) {
  const Set* set = FindSet(name);
  if (set) Commit({.kind = EntryKind::kReset, .set = IndexOf(*set)}, batch);
  return set != nullptr;
}

// Changing.

base::Result<> Ledger::Apply(const Entry& entry) {
  const auto has_set = [&] { return entry.set < sets_.size(); };
  const auto has_member = [&] { return entry.member < members_.size(); };
  switch (entry.kind) {
    case EntryKind::kHeader:
      return Unfit("a second header");
    case EntryKind::kRegister:
      if (FindSet(entry.params.name)) return Unfit("a set is registered twice");
      sets_.push_back(TRY(SetFrom(entry.params, {})));
      return {};
    case EntryKind::kJoin:
      Join(entry);
      return {};
    case EntryKind::kTake:
      if (!has_set() || !has_member()) return Unfit("an unknown set or member");
      return ApplyTake(entry);
    case EntryKind::kDone:
    case EntryKind::kFailed:
    case EntryKind::kDouble:
      return ApplyReport(entry);
    case EntryKind::kTellEnd:
      if (!has_set() || !has_member()) return Unfit("an unknown set or member");
      members_[entry.member].told_end.insert(entry.set);
      return {};
    case EntryKind::kLeave:
      if (!has_member()) return Unfit("an unknown member");
      Leave(entry);
      return {};
    case EntryKind::kExpire:
      if (!has_member()) return Unfit("an unknown member");
      TakeBack(members_[entry.member]);
      return {};
    case EntryKind::kGiveBack: {
      const auto out = out_.find(entry.lease);
      if (out == out_.end()) return Unfit("an unknown lease");
      members_[out->second.member].leases.erase(entry.lease);
      TakeBack(entry.lease);
      return {};
    }
    case EntryKind::kCut:
      if (!has_member()) return Unfit("an unknown member");
      members_[entry.member].cut = true;
      return {};
    case EntryKind::kAway:
      for (Member& member : members_) {
        if (member.whereabouts != Whereabouts::kHere) continue;
        member.cut = true;
        member.heard = entry.time;
      }
      return {};
    case EntryKind::kRestore:
      return ApplyRestore(entry);
    case EntryKind::kReset:
      if (!has_set()) return Unfit("an unknown set");
      DropLeases(entry.set);
      sets_[entry.set] = TRY(SetFrom(sets_[entry.set].params, {}));
      return {};
    case EntryKind::kKeep:
      if (!has_set()) return Unfit("an unknown set");
      sets_[entry.set].kept[entry.name] = entry.value;
      return {};
  }
  return Unfit("an unknown entry");
}

void Ledger::Join(const Entry& entry) {
  const auto [found, is_new] =
      member_index_.try_emplace(entry.name, static_cast<uint32_t>(members_.size()));
  if (is_new) members_.push_back({.name = entry.name});
  Member& member = members_[found->second];
  member.number = entry.number;
  member.whereabouts = Whereabouts::kHere;
  member.heard = entry.time;
}

void Ledger::Leave(const Entry& entry) {
  Member& member = members_[entry.member];
  if (entry.succeeded) {
    const std::set<int32_t> leases = member.leases;
    for (const int32_t id : leases) {
      const Out lease = out_.at(id);
      if (member.told_end.contains(lease.set)) Settle(lease.set, lease.shard);
    }
  }
  TakeBack(member);
  member.recent.clear();
  member.whereabouts = entry.succeeded ? Whereabouts::kSucceeded : Whereabouts::kGone;
}

base::Result<> Ledger::ApplyTake(const Entry& entry) {
  Set& set = sets_[entry.set];
  if (members_[entry.member].whereabouts != Whereabouts::kHere) {
    return Unfit("shards are handed out to a member that is gone");
  }
  std::vector<std::pair<Shard, int32_t>> due;
  for (const Shard& shard : entry.due) {
    const auto found = set.due.find(shard);
    if (found == set.due.end()) return Unfit("a shard that is not due is handed out");
    if (!due.empty() && !(due.back().first < shard)) return Unfit("shards are out of order");
    due.emplace_back(shard, found->second);
  }
  if (entry.fresh > Fresh(set)) {
    return Unfit("more shards are handed out than there are");
  }
  if (due.size() + entry.fresh > kMostTaken) return Unfit("too many shards are handed out at once");

  given_.clear();
  for (const auto& [shard, errors] : due) {
    set.due.erase(shard);
    Give(entry.set, shard, entry.member, entry.time, errors);
  }
  for (uint32_t i = 0; i < entry.fresh; ++i) {
    if (set.cursor.position == set.shards) set.cursor = {set.cursor.epoch + 1, 0};
    Give(entry.set, set.cursor, entry.member, entry.time, 0);
    ++set.cursor.position;
  }
  Member& member = members_[entry.member];
  member.heard = entry.time;
  member.told_end.erase(entry.set);
  return {};
}

void Ledger::Give(uint32_t set, Shard shard, uint32_t member, int64_t now, int32_t errors) {
  const int32_t id = NextId();
  out_[id] = {.set = set, .shard = shard, .member = member, .since = now, .errors = errors};
  sets_[set].doing[shard] = id;
  members_[member].leases.insert(id);
  given_.push_back(id);
}

int32_t Ledger::NextId() {
  int32_t id;
  do {
    id = next_id_;
    wrapped_ |= id == std::numeric_limits<int32_t>::max();
    next_id_ = id == std::numeric_limits<int32_t>::max() ? 1 : id + 1;
  } while (out_.contains(id) || taken_back_.contains(id));
  return id;
}

base::Result<> Ledger::ApplyReport(const Entry& entry) {
  const auto out = out_.find(entry.lease);
  if (entry.kind == EntryKind::kDouble) return {};
  if (entry.kind == EntryKind::kDone) {
    const auto taken_back = taken_back_.find(entry.lease);
    if (out == out_.end() && taken_back == taken_back_.end()) return Unfit("an unknown lease");
    const Out lease = out == out_.end() ? taken_back->second : out->second;
    Settle(lease.set, lease.shard);
    Finish(lease, entry.time);
    return {};
  }
  if (out == out_.end()) return Unfit("an unknown lease");
  const Out lease = out->second;
  Set& set = sets_[lease.set];
  Member& member = members_[lease.member];
  member.leases.erase(entry.lease);
  member.heard = std::max(member.heard, entry.time);
  set.doing.erase(lease.shard);
  out_.erase(out);
  if (lease.errors + 1 >= kMostErrors) {
    set.quarantined[lease.shard] = entry.error;
    set.records_quarantined += RecordsOf(set, lease.shard);
  } else {
    set.due[lease.shard] = lease.errors + 1;
  }
  return {};
}

// The shard is done: whoever has it now, and whoever had it, has nothing to report any more.
void Ledger::Settle(uint32_t index, Shard shard) {
  Set& set = sets_[index];
  const int64_t records = RecordsOf(set, shard);
  set.due.erase(shard);
  if (set.quarantined.erase(shard) > 0) set.records_quarantined -= records;
  if (const auto doing = set.doing.find(shard); doing != set.doing.end()) {
    members_[out_.at(doing->second).member].leases.erase(doing->second);
    out_.erase(doing->second);
    set.doing.erase(doing);
  }
  const auto [first, last] = set.taken_back.equal_range(shard);
  for (auto lease = first; lease != last; ++lease) taken_back_.erase(lease->second);
  set.taken_back.erase(first, last);
  set.records_done += records;
}

void Ledger::Finish(const Out& lease, int64_t now) {
  Member& member = members_[lease.member];
  const int64_t records = RecordsOf(sets_[lease.set], lease.shard);
  ++member.done;
  member.records_done = std::min(member.records_done + records, int64_t{1} << 62);
  member.heard = std::max(member.heard, now);
  if (member.whereabouts != Whereabouts::kHere) return;
  if (member.recent.size() == kRecent) member.recent.erase(member.recent.begin());
  member.recent.push_back({.set = lease.set,
                           .took = std::max<int64_t>(0, now - lease.since),
                           .when = now,
                           .records = records});
}

void Ledger::TakeBack(Member& member) {
  for (const int32_t id : member.leases) TakeBack(id);
  member.leases.clear();
}

void Ledger::TakeBack(int32_t lease) {
  const auto out = out_.find(lease);
  Set& set = sets_[out->second.set];
  set.doing.erase(out->second.shard);
  set.due[out->second.shard] = out->second.errors;
  set.taken_back.emplace(out->second.shard, lease);
  taken_back_.insert(*out);
  out_.erase(out);
}

void Ledger::DropLeases(uint32_t index) {
  Set& set = sets_[index];
  for (const auto& [shard, id] : set.doing) {
    members_[out_.at(id).member].leases.erase(id);
    out_.erase(id);
  }
  for (const auto& [shard, id] : set.taken_back) taken_back_.erase(id);
  set.doing.clear();
  set.taken_back.clear();
}

// Reading.

base::Result<Ledger> Ledger::Replay(const Job& job, std::string_view log, size_t* good) {
  *good = 0;
  Ledger ledger(job);
  const size_t header = TRY(CheckHeader(job, log));
  if (header != 0) *good = header + TRY(ledger.Continue(log.substr(header), header));
  return ledger;
}

base::Result<size_t> Ledger::Continue(std::string_view log, uint64_t offset) {
  return ForEachEntry(log, offset, [this](const Entry& entry) { return Apply(entry); });
}

}  // namespace ledger
