// A set: its shards, their order, and how far it is.

#include <algorithm>
#include <limits>

#include "ledger/ledger.h"
#include "ledger/permutation.h"

namespace ledger {
namespace {

// Keeps the order of records apart from the order of shards under the same seed.
constexpr uint64_t kRecordSeed = 0x5ec0cd5eed;

}  // namespace

bool Ledger::MoreEpochs(const Set& set) {
  return set.params.epochs == 0 ? set.cursor.epoch < kMostEpoch
                                : set.cursor.epoch < set.params.epochs;
}

bool Ledger::IsComplete(const Set& set) {
  return set.cursor.position == set.shards && !MoreEpochs(set) && set.due.empty() &&
         set.doing.empty();
}

int64_t Ledger::Fresh(const Set& set) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t rest = set.shards - set.cursor.position;
  if (!MoreEpochs(set)) return Capped(rest, kMost);
  if (set.params.barrier) {
    const bool opens = rest == 0 && set.due.empty() && set.doing.empty();
    return Capped(opens ? set.shards : rest, kMost);
  }
  if (set.params.epochs == 0) return kMost;
  return Capped(rest + __int128{set.params.epochs - set.cursor.epoch} * set.shards, kMost);
}

int64_t Ledger::IndexAt(const Set& set, Shard shard) {
  if (!set.params.shuffle_shards) return shard.position;
  return Permutation(set.params.seed, static_cast<uint64_t>(shard.epoch),
                     set.shards)(shard.position);
}

int64_t Ledger::RecordsOf(const Set& set, Shard shard) {
  const int64_t start = IndexAt(set, shard) * set.params.shard_size;
  return std::min(set.params.shard_size, set.params.size - start);
}

int64_t Ledger::RecordsTotal(const Set& set) {
  if (set.params.epochs == 0) return -1;
  return Capped(__int128{set.params.size} * set.params.epochs, std::numeric_limits<int64_t>::max());
}

int64_t Ledger::RecordsLeft(const Set& set) {
  if (set.params.epochs == 0) return -1;
  const __int128 left =
      __int128{set.params.size} * set.params.epochs - set.records_done - set.records_quarantined;
  return Capped(left, std::numeric_limits<int64_t>::max());
}

Lease Ledger::LeaseFrom(int32_t id, const Out& out) const {
  const Set& set = sets_[out.set];
  const SetParams& params = set.params;
  Lease lease{.id = id, .set = params.name, .epoch = out.shard.epoch};
  lease.index = IndexAt(set, out.shard);
  lease.start = lease.index * params.shard_size;
  lease.end = std::min(lease.start + params.shard_size, params.size);
  if (params.shuffle_records) {
    const Permutation order(params.seed ^ kRecordSeed, static_cast<uint64_t>(lease.epoch),
                            params.size);
    lease.records.reserve(static_cast<size_t>(lease.end - lease.start));
    for (int64_t i = lease.start; i < lease.end; ++i) lease.records.push_back(order(i));
  }
  return lease;
}

// Only the last shard of the set is shorter, wherever the order of the epoch puts it.
int64_t Ledger::Passed(const Set& set) {
  const int64_t last = set.shards - 1;
  int64_t at = last;
  if (set.params.shuffle_shards) {
    const auto epoch = static_cast<uint64_t>(set.cursor.epoch);
    at = Permutation(set.params.seed, epoch, set.shards).Inverse(last);
  }
  if (at >= set.cursor.position) return set.cursor.position * set.params.shard_size;
  return (set.cursor.position - 1) * set.params.shard_size +
         (set.params.size - last * set.params.shard_size);
}

Progress Ledger::ProgressOf(const Set& set) {
  Progress progress{.cursor = set.cursor, .due = {}, .quarantined = {}};
  for (const auto& [shard, errors] : set.due) progress.due.push_back({shard, errors});
  for (const auto& [shard, error] : set.quarantined) progress.quarantined.push_back({shard, error});
  return progress;
}

base::Result<Ledger::Set> Ledger::SetFrom(SetParams params, const Progress& progress) {
  if (std::string problem = ProblemWith(params); !problem.empty()) return base::Invalid(problem);
  Set set{.params = std::move(params)};
  const int64_t size = set.params.size, shard_size = set.params.shard_size;
  set.shards = size / shard_size + (size % shard_size != 0);
  set.cursor = progress.cursor;
  if (set.cursor.epoch < 1 || set.cursor.epoch > kMostEpoch || set.cursor.position < 0 ||
      set.cursor.position > set.shards ||
      (set.params.epochs != 0 && set.cursor.epoch > set.params.epochs)) {
    return base::Invalid("the cursor is outside of the data set");
  }
  const auto before_cursor = [&](Shard shard) {
    return shard.epoch >= 1 && shard.position >= 0 && shard.position < set.shards &&
           shard < set.cursor;
  };
  __int128 left = 0;
  for (const auto& [shard, errors] : progress.due) {
    if (!before_cursor(shard) || errors < 0 || errors >= kMostErrors ||
        !set.due.emplace(shard, errors).second) {
      return base::Invalid("a shard is due that cannot be");
    }
    left += RecordsOf(set, shard);
  }
  for (const auto& [shard, error] : progress.quarantined) {
    if (!before_cursor(shard) || set.due.contains(shard) ||
        !set.quarantined.emplace(shard, error).second) {
      return base::Invalid("a shard is quarantined that cannot be");
    }
    set.records_quarantined += RecordsOf(set, shard);
  }
  const __int128 passed = __int128{set.cursor.epoch - 1} * size + Passed(set);
  set.records_done = passed - left - set.records_quarantined;
  return set;
}

base::Result<> Ledger::ApplyRestore(const Entry& entry) {
  Set restored = TRY(SetFrom(entry.params, entry.progress));
  if (const Set* set = FindSet(entry.params.name)) {
    const uint32_t index = IndexOf(*set);
    DropLeases(index);
    sets_[index] = std::move(restored);
  } else {
    sets_.push_back(std::move(restored));
  }
  return {};
}

}  // namespace ledger
