// A model and the shards that it has learned, bound to each other.
//
// A process that saves its model and reports its shards can die between the two: whichever comes
// first, a record is then lost from the model or learned twice, by it or by whoever gets the shard
// next. So both are one write of this log: the reports, and the name under which the model was
// saved. A model whose name is not kept here was never saved, as far as anybody will load it. Only
// the holder of a lease may do so: a shard that was taken back may be in another's model by now.

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "ledger/ledger.h"

namespace ledger {
namespace {

constexpr size_t kMostKey = 200, kMostValue = 1000;
constexpr size_t kMostKeys = 100'000;  // one a replica: more than a job can have

// No control characters, as in all texts of the log.
base::Result<> CheckText(std::string_view what, std::string_view text, size_t least, size_t most) {
  if (text.size() < least || text.size() > most) {
    return base::Invalid(
        fmt::format("a {} has {} to {} bytes, not {}", what, least, most, text.size()));
  }
  if (base::OneLine(base::CleanUtf8(text), 4096) != text) {
    return base::Invalid(fmt::format("a {} has a control character", what));
  }
  return {};
}

}  // namespace

base::Result<bool> Ledger::Keep(std::string_view set_name, const std::string& member_name,
                                const std::vector<int32_t>& leases, const std::string& key,
                                const std::string& value, base::Time now, Batch& batch) {
  TRY(CheckText("key", key, 1, kMostKey));
  TRY(CheckText("value", value, 0, kMostValue));
  const Set* set = FindSet(set_name);
  if (!set) return base::Invalid(fmt::format("there is no data set {}", set_name));
  const Member* member = FindMember(member_name);
  if (!member || member->whereabouts != Whereabouts::kHere) {
    return base::Invalid(fmt::format("{} is not here", member_name));
  }
  const uint32_t index = IndexOf(*set);
  const auto kept = set->kept.find(key);
  if (kept != set->kept.end() && kept->second == value) return true;
  if (kept == set->kept.end() && set->kept.size() >= kMostKeys) {
    return base::Invalid(fmt::format("data set {} has {} keys already", set_name, kMostKeys));
  }
  const bool all_held = std::ranges::all_of(leases, [&](int32_t lease) {
    return member->leases.contains(lease) && out_.at(lease).set == index &&
           std::ranges::count(leases, lease) == 1;
  });
  if (!all_held) return false;
  for (const int32_t lease : leases) {
    Commit({.kind = EntryKind::kDone, .lease = lease, .time = now.time_since_epoch().count()},
           batch);
  }
  Commit({.kind = EntryKind::kKeep, .name = key, .value = value, .set = index}, batch);
  return true;
}

const std::string* Ledger::Kept(std::string_view set_name, const std::string& key) const {
  const Set* set = FindSet(set_name);
  if (!set) return nullptr;
  const auto kept = set->kept.find(key);
  return kept == set->kept.end() ? nullptr : &kept->second;
}

}  // namespace ledger
