// Two passes, so that nothing is held for a record that is in order. The first finds the leases
// that were reported when they were over: doubles. The second replays, and follows only the shards
// of those leases, whose first reporter is then known too: a shard that is done is not handed out
// again, so whoever doubled it took it before it was done.

#include "ledger/audit.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

namespace ledger {

class Auditor {
 public:
  explicit Auditor(const Job& job) : ledger_(job) {}

  void Expect(const Entry& entry) {
    if (entry.kind == EntryKind::kDouble) doubled_.insert(entry.lease);
  }
  base::Result<> Apply(const Entry& entry);
  base::Result<std::vector<SetAudit>> Account() const;

 private:
  using Set = Ledger::Set;
  using Out = Ledger::Out;

  struct Epoch {
    int64_t reported = 0;  // records, without those of doubles
    int64_t assumed = 0;
  };
  struct Tale {  // of a set, since it was last restored or reset
    std::map<int64_t, Epoch> epochs;
    std::map<Shard, std::map<int32_t, uint32_t>> followed;  // leases that reported, with who
    std::map<Shard, uint32_t> assumed;                      // with who had it
    int64_t restores = 0, resets = 0, void_reports = 0, repeats = 0;
    bool restored = false;
  };

  void SeeReport(const Entry& entry);
  void SeeDouble(const Entry& entry);
  void SeeLeave(const Entry& entry);
  void Forget(uint32_t set);
  base::Result<EpochAudit> AccountOf(const Set& set, const Tale& tale, int64_t epoch) const;

  Ledger ledger_;
  std::unordered_set<int32_t> doubled_;
  std::unordered_map<int32_t, Out> leases_;  // of doubled_, as far as they were given
  std::vector<Tale> tales_;                  // as the sets of the ledger
};

namespace {

// The range of a shard, joined to the last one if that ends there and is alike.
void Add(std::vector<AuditRange>& ranges, AuditRange range) {
  if (!ranges.empty()) {
    AuditRange& last = ranges.back();
    if (last.end == range.start && last.by == range.by && last.error == range.error) {
      last.end = range.end;
      return;
    }
  }
  if (ranges.size() < kMostRanges) ranges.push_back(std::move(range));
}

}  // namespace

base::Result<> Auditor::Apply(const Entry& entry) {
  // What the entry ends is looked at before it is gone.
  if (entry.kind == EntryKind::kDone) SeeReport(entry);
  if (entry.kind == EntryKind::kDouble) SeeDouble(entry);
  if (entry.kind == EntryKind::kLeave) SeeLeave(entry);
  TRY(ledger_.Apply(entry));
  tales_.resize(ledger_.sets_.size());
  if (entry.kind == EntryKind::kTake) {
    for (const int32_t id : ledger_.given_) {
      if (!doubled_.contains(id)) continue;
      const Out& lease = leases_[id] = ledger_.out_.at(id);
      tales_[lease.set].followed[lease.shard];
    }
  }
  if (entry.kind == EntryKind::kReset) {
    Forget(entry.set);
    ++tales_[entry.set].resets;
  }
  if (entry.kind == EntryKind::kRestore) {
    const uint32_t set = ledger_.IndexOf(*ledger_.FindSet(entry.params.name));
    Forget(set);
    ++tales_[set].restores;
    tales_[set].restored = true;
  }
  return {};
}

void Auditor::Forget(uint32_t set) {
  Tale& tale = tales_[set];
  tale.epochs.clear();
  tale.followed.clear();
  tale.assumed.clear();
  tale.restored = false;
  std::erase_if(leases_, [set](const auto& lease) { return lease.second.set == set; });
}

void Auditor::SeeReport(const Entry& entry) {
  auto found = ledger_.out_.find(entry.lease);
  if (found == ledger_.out_.end()) {
    found = ledger_.taken_back_.find(entry.lease);
    if (found == ledger_.taken_back_.end()) return;  // Apply will say so
  }
  const Out& lease = found->second;
  Tale& tale = tales_[lease.set];
  tale.epochs[lease.shard.epoch].reported +=
      Ledger::RecordsOf(ledger_.sets_[lease.set], lease.shard);
  const auto followed = tale.followed.find(lease.shard);
  if (followed != tale.followed.end()) followed->second[entry.lease] = lease.member;
}

void Auditor::SeeDouble(const Entry& entry) {
  const auto lease = leases_.find(entry.lease);
  if (lease == leases_.end()) {
    // Of which set is not known any more; there is mostly one.
    for (Tale& tale : tales_) {
      if (tale.restores + tale.resets == 0) continue;
      ++tale.void_reports;
      return;
    }
    return;
  }
  const auto& [set, shard, member, since, errors] = lease->second;
  Tale& tale = tales_[set];
  const Set& state = ledger_.sets_[set];
  // One that reports after its own error does not make the shard done.
  const bool open =
      state.due.contains(shard) || state.doing.contains(shard) || state.quarantined.contains(shard);
  if (open || !tale.followed[shard].try_emplace(entry.lease, member).second) {
    ++tale.repeats;
    return;
  }
  // What was assumed is now said.
  const auto assumed = tale.assumed.find(shard);
  if (assumed == tale.assumed.end()) return;
  const int64_t records = Ledger::RecordsOf(state, shard);
  tale.epochs[shard.epoch].assumed -= records;
  tale.epochs[shard.epoch].reported += records;
  tale.assumed.erase(assumed);
}

void Auditor::SeeLeave(const Entry& entry) {
  if (!entry.succeeded || entry.member >= ledger_.members_.size()) return;
  const Ledger::Member& member = ledger_.members_[entry.member];
  for (const int32_t id : member.leases) {
    const Out& lease = ledger_.out_.at(id);
    if (!member.told_end.contains(lease.set)) continue;
    Tale& tale = tales_[lease.set];
    tale.epochs[lease.shard.epoch].assumed +=
        Ledger::RecordsOf(ledger_.sets_[lease.set], lease.shard);
    tale.assumed[lease.shard] = entry.member;
  }
}

base::Result<std::vector<SetAudit>> Auditor::Account() const {
  std::vector<SetAudit> audits;
  for (size_t i = 0; i < ledger_.sets_.size(); ++i) {
    const Set& set = ledger_.sets_[i];
    const Tale& tale = tales_[i];
    SetAudit& audit = audits.emplace_back();
    audit.params = set.params;
    audit.epochs_begun = set.cursor.epoch;
    audit.restores = tale.restores;
    audit.resets = tale.resets;
    audit.void_reports = tale.void_reports;
    audit.repeats = tale.repeats;
    audit.complete = Ledger::IsComplete(set);
    std::set<int64_t> epochs = {set.cursor.epoch};
    for (const auto& [epoch, counts] : tale.epochs) epochs.insert(epoch);
    for (const auto& [shard, errors] : set.due) epochs.insert(shard.epoch);
    for (const auto& [shard, lease] : set.doing) epochs.insert(shard.epoch);
    for (const auto& [shard, error] : set.quarantined) epochs.insert(shard.epoch);
    for (const int64_t epoch : epochs) {
      audit.epochs.push_back(TRY_AS(fmt::format("data set {}, epoch {}", set.params.name, epoch),
                                    AccountOf(set, tale, epoch)));
    }
  }
  return audits;
}

base::Result<EpochAudit> Auditor::AccountOf(const Set& set, const Tale& tale, int64_t epoch) const {
  EpochAudit audit{.epoch = epoch};
  const auto name = [&](uint32_t member) { return ledger_.members_[member].name; };
  const auto range = [&](Shard shard) {
    const int64_t start = Ledger::IndexAt(set, shard) * set.params.shard_size;
    return AuditRange{.start = start, .end = start + Ledger::RecordsOf(set, shard)};
  };
  const auto of_epoch = [&](const auto& map, auto see) {
    for (auto at = map.lower_bound({epoch, 0}); at != map.end() && at->first.epoch == epoch; ++at) {
      see(at->first, at->second);
    }
  };
  // In the order of the records, so that neighbours meet.
  const auto sorted = [](std::vector<AuditRange> ranges) {
    std::ranges::sort(ranges, {}, &AuditRange::start);
    std::vector<AuditRange> joined;
    for (AuditRange& each : ranges) Add(joined, std::move(each));
    return joined;
  };

  std::vector<AuditRange> more, assumed, quarantined, never;
  of_epoch(set.due, [&](Shard shard, auto&) { never.push_back(range(shard)); });
  of_epoch(set.doing, [&](Shard shard, auto&) { never.push_back(range(shard)); });
  for (const AuditRange& each : never) audit.never += each.end - each.start;
  if (epoch == set.cursor.epoch && set.cursor.position < set.shards) {
    // Shuffled they are told one by one, as far as that is of use.
    const int64_t passed = Ledger::Passed(set);
    if (!set.params.shuffle_shards) {
      never.push_back({.start = passed, .end = set.params.size});
    } else {
      for (Shard shard = set.cursor;
           shard.position < set.shards && never.size() < 100 * kMostRanges; ++shard.position) {
        never.push_back(range(shard));
      }
    }
    audit.never += set.params.size - passed;
  }
  of_epoch(set.quarantined, [&](Shard shard, const std::string& error) {
    quarantined.push_back(range(shard));
    quarantined.back().error = error;
    audit.quarantined += quarantined.back().end - quarantined.back().start;
  });
  of_epoch(tale.assumed, [&](Shard shard, uint32_t member) {
    assumed.push_back(range(shard));
    assumed.back().by = {name(member)};
    audit.assumed += assumed.back().end - assumed.back().start;
  });
  of_epoch(tale.followed, [&](Shard shard, const std::map<int32_t, uint32_t>& reports) {
    if (reports.size() < 2) return;
    more.push_back(range(shard));
    for (const auto& [lease, member] : reports) more.back().by.push_back(name(member));
    audit.more += more.back().end - more.back().start;
  });

  const auto counted = tale.epochs.find(epoch);
  const Epoch counts = counted == tale.epochs.end() ? Epoch() : counted->second;
  audit.once = counts.reported - audit.more;
  audit.restored =
      set.params.size - audit.never - audit.quarantined - audit.assumed - counts.reported;
  if (audit.once < 0 || counts.assumed != audit.assumed || audit.restored < 0 ||
      (audit.restored > 0 && !tale.restored)) {
    return base::Invalid(fmt::format(
        "the account does not add up: {} records reported, {} assumed, {} quarantined, {} left of "
        "{}",
        counts.reported, counts.assumed, audit.quarantined, audit.never, set.params.size));
  }
  audit.more_ranges = sorted(std::move(more));
  audit.assumed_ranges = sorted(std::move(assumed));
  audit.quarantined_ranges = sorted(std::move(quarantined));
  audit.never_ranges = sorted(std::move(never));
  return audit;
}

base::Result<Audit> AuditLog(const Job& job, std::string_view log) {
  Audit audit;
  const size_t header = TRY(CheckHeader(job, log));
  if (header != 0) {
    Auditor auditor(job);
    const std::string_view frames = log.substr(header);
    TRY(ForEachEntry(frames, header, [&](const Entry& entry) -> base::Result<> {
      auditor.Expect(entry);
      return {};
    }));
    audit.good = header + TRY(ForEachEntry(frames, header, [&](const Entry& entry) {
                   ++audit.entries;
                   return auditor.Apply(entry);
                 }));
    audit.sets = TRY(auditor.Account());
  }
  audit.torn = log.size() - audit.good;
  return audit;
}

}  // namespace ledger
