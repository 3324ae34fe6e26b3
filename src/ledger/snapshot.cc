// The whole state as bytes, for a quick restart: "TYLSNAP1", the body, CRC-32C of both. Only that
// the checksum fits is taken on trust; what the body says of sets goes through the same checks as a
// checkpoint, and leases must be of sets and members that are there.

#include <algorithm>
#include <limits>

#include "base/crc32c.h"
#include "ledger/ledger.h"

namespace ledger {
namespace {

constexpr std::string_view kMagic = "TYLSNAP1";
constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMost62 = int64_t{1} << 62;

std::string SumOf(std::string_view bytes) {
  const uint32_t sum = base::Masked(base::Crc32c(bytes));
  std::string out;
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(sum >> shift));
  return out;
}

template <typename Map>
std::vector<int32_t> SortedKeys(const Map& map) {
  std::vector<int32_t> keys;
  keys.reserve(map.size());
  for (const auto& [key, value] : map) keys.push_back(key);
  std::ranges::sort(keys);
  return keys;
}

int32_t ReadId(ByteReader& reader) { return static_cast<int32_t>(reader.Between(1, kMost32)); }

}  // namespace

std::string Ledger::Snapshot(uint64_t offset) const {
  std::string out(kMagic);
  PutText(out, job_.uid);
  PutText(out, job_.name);
  PutNumber(out, offset);
  PutNumber(out, static_cast<uint64_t>(next_id_));
  PutNumber(out, wrapped_);
  PutNumber(out, sets_.size());
  for (const Set& set : sets_) {
    PutParams(out, set.params);
    PutProgress(out, ProgressOf(set));
    PutNumber(out, set.kept.size());
    for (const auto& [key, value] : set.kept) {
      PutText(out, key);
      PutText(out, value);
    }
  }
  PutNumber(out, members_.size());
  for (const Member& member : members_) {
    PutText(out, member.name);
    PutNumber(out, static_cast<uint64_t>(member.number));
    PutNumber(out, static_cast<uint64_t>(member.whereabouts));
    PutNumber(out, member.cut);
    PutNumber(out, member.told_end.size());
    for (const uint32_t set : member.told_end) PutNumber(out, set);
    PutNumber(out, static_cast<uint64_t>(member.done));
    PutNumber(out, static_cast<uint64_t>(member.records_done));
    PutSigned(out, member.heard);
    PutNumber(out, member.recent.size());
    for (const Recent& recent : member.recent) {
      PutNumber(out, recent.set);
      PutNumber(out, static_cast<uint64_t>(recent.took));
      PutSigned(out, recent.when);
      PutNumber(out, static_cast<uint64_t>(recent.records));
    }
  }
  for (const auto* leases : {&out_, &taken_back_}) {
    PutNumber(out, leases->size());
    for (const int32_t id : SortedKeys(*leases)) {
      const Out& lease = leases->at(id);
      PutNumber(out, static_cast<uint64_t>(id));
      PutNumber(out, lease.set);
      PutNumber(out, static_cast<uint64_t>(lease.shard.epoch));
      PutNumber(out, static_cast<uint64_t>(lease.shard.position));
      PutNumber(out, lease.member);
      PutSigned(out, lease.since);
      PutNumber(out, static_cast<uint64_t>(lease.errors));
    }
  }
  return out + SumOf(out);
}

base::Result<Ledger> Ledger::FromSnapshot(const Job& job, std::string_view snapshot,
                                          uint64_t* offset) {
  const auto damaged = [] { return base::Invalid("the snapshot of the ledger is damaged"); };
  if (snapshot.size() < kMagic.size() + 4 || !snapshot.starts_with(kMagic)) return damaged();
  const std::string_view summed = snapshot.substr(0, snapshot.size() - 4);
  if (SumOf(summed) != snapshot.substr(summed.size())) return damaged();

  ByteReader reader(summed.substr(kMagic.size()));
  Ledger ledger(job);
  const std::string_view uid = reader.Text(), name = reader.Text();
  if (!reader.ok()) return damaged();
  if (uid != job.uid || name != job.name) {
    return base::Invalid("the snapshot is of the ledger of another job");
  }
  *offset = reader.Number();
  ledger.next_id_ = ReadId(reader);
  ledger.wrapped_ = reader.Flag();
  const size_t sets = reader.Count();
  for (size_t i = 0; i < sets && reader.ok(); ++i) {
    SetParams params = ReadParams(reader);
    const Progress progress = ReadProgress(reader);
    if (!reader.ok() || ledger.FindSet(params.name)) return damaged();
    Set& set =
        ledger.sets_.emplace_back(TRY_AS("the snapshot", SetFrom(std::move(params), progress)));
    const size_t kept = reader.Count();
    for (size_t j = 0; j < kept && reader.ok(); ++j) {
      const std::string_view key = reader.Text();
      if (!set.kept.empty() && key <= set.kept.rbegin()->first) return damaged();
      set.kept.emplace(key, reader.Text());
    }
  }
  if (!ledger.ReadMembers(reader) || !ledger.ReadLeases(reader, ledger.out_) ||
      !ledger.ReadLeases(reader, ledger.taken_back_) || !reader.AtEnd()) {
    return damaged();
  }
  return ledger;
}

bool Ledger::ReadMembers(ByteReader& reader) {
  const size_t members = reader.Count();
  for (size_t i = 0; i < members && reader.ok(); ++i) {
    Member& member = members_.emplace_back();
    member.name = reader.Text();
    if (!member_index_.try_emplace(member.name, static_cast<uint32_t>(i)).second) return false;
    member.number = static_cast<int32_t>(reader.Between(0, kMost32));
    member.whereabouts = static_cast<Whereabouts>(reader.Between(0, 2));
    member.cut = reader.Flag();
    const size_t told = reader.Count();
    for (size_t j = 0; j < told && reader.ok(); ++j) {
      const auto set = static_cast<uint32_t>(reader.Between(0, kMost32));
      if (set >= sets_.size() || !member.told_end.insert(set).second) return false;
    }
    member.done = reader.Between(0, kMost62);
    member.records_done = reader.Between(0, kMost62);
    member.heard = ReadTime(reader);
    const size_t recent = reader.Count();
    if (recent > kRecent) return false;
    for (size_t j = 0; j < recent && reader.ok(); ++j) {
      Recent& shard = member.recent.emplace_back();
      shard.set = static_cast<uint32_t>(reader.Between(0, kMost32));
      shard.took = reader.Between(0, kMost62);
      shard.when = ReadTime(reader);
      shard.records = reader.Between(0, kMost62);
      if (shard.set >= sets_.size()) return false;
    }
  }
  return reader.ok();
}

// Into out_, the leases that are out, and then into taken_back_, those of shards that are not done.
bool Ledger::ReadLeases(ByteReader& reader, std::unordered_map<int32_t, Out>& leases) {
  const bool are_out = &leases == &out_;
  const size_t count = reader.Count();
  for (size_t i = 0; i < count && reader.ok(); ++i) {
    const int32_t id = ReadId(reader);
    Out lease;
    lease.set = static_cast<uint32_t>(reader.Between(0, kMost32));
    lease.shard.epoch = reader.Between(1, kMostEpoch);
    lease.shard.position = reader.Between(0, kMostRecords);
    lease.member = static_cast<uint32_t>(reader.Between(0, kMost32));
    lease.since = ReadTime(reader);
    lease.errors = static_cast<int32_t>(reader.Between(0, kMostErrors - 1));
    if (!reader.ok() || lease.set >= sets_.size() || lease.member >= members_.size() ||
        out_.contains(id) || taken_back_.contains(id)) {
      return false;
    }
    Set& set = sets_[lease.set];
    if (are_out) {
      const bool open = lease.shard.position < set.shards && lease.shard < set.cursor &&
                        !set.due.contains(lease.shard) && !set.quarantined.contains(lease.shard);
      if (!open || !set.doing.emplace(lease.shard, id).second) return false;
      set.records_done -= RecordsOf(set, lease.shard);
      members_[lease.member].leases.insert(id);
    } else {
      if (!set.due.contains(lease.shard) && !set.doing.contains(lease.shard) &&
          !set.quarantined.contains(lease.shard)) {
        return false;
      }
      set.taken_back.emplace(lease.shard, id);
    }
    leases[id] = lease;
  }
  return reader.ok();
}

}  // namespace ledger
