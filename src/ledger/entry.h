// What the log is made of: one entry for each change of the ledger, and its bytes.
//
// An entry says what happened, not what followed from it: which shards a member took, not where
// the cursor went. Sets and members are named once, by the entry that brings them in, and are
// numbers from then on, in the order of their coming. Times are microseconds since 1970.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "ledger/bytes.h"

namespace ledger {

struct SetParams {
  std::string name;
  int64_t size = 0;        // records
  int64_t shard_size = 0;  // records; the last shard of the set may be shorter
  int32_t epochs = 1;      // 0: endless
  bool shuffle_shards = false;
  bool shuffle_records = false;
  bool barrier =
      false;  // an epoch begins when the one before is settled, not when it is handed out
  uint64_t seed = 0;
  int32_t task_type = 1;  // of elasticai_api's TaskType; the ledger only keeps it

  bool operator==(const SetParams&) const = default;
};

// A shard of a set: the one at this place in the order of this epoch.
struct Shard {
  int64_t epoch = 1;
  int64_t position = 0;

  auto operator<=>(const Shard&) const = default;
};

// How far a set is: a shard before the cursor that is neither due again nor quarantined is done.
// So it is as long as what is left over, however many shards are done.
struct Progress {
  struct Due {
    Shard shard;
    int32_t errors = 0;  // error reports so far
    bool operator==(const Due&) const = default;
  };
  struct Quarantined {
    Shard shard;
    std::string error;
    bool operator==(const Quarantined&) const = default;
  };

  Shard cursor =
      {};  // the next one that was never handed out; position may be the end of the epoch
  std::vector<Due> due;                  // in order
  std::vector<Quarantined> quarantined;  // in order

  bool operator==(const Progress&) const = default;
};

enum class EntryKind : uint8_t {
  kHeader = 1,     // uid, name of the job: the first of a log, and nowhere else
  kRegister = 2,   // params: a new set
  kJoin = 3,       // name, number, time: a member comes, or comes again
  kTake = 4,       // set, member, time, due (taken again), fresh (taken from the cursor)
  kDone = 5,       // lease, time
  kFailed = 6,     // lease, time, error
  kDouble = 7,     // lease, time: a report that changes nothing, kept for the audit
  kTellEnd = 8,    // member, set
  kLeave = 9,      // member, succeeded, time
  kExpire = 10,    // member, time
  kCut = 11,       // member: one of its calls was cut
  kAway = 12,      // time: the master was away
  kRestore = 13,   // params, progress: of a set with this name, new or not
  kReset = 14,     // set
  kGiveBack = 15,  // lease, time: it did not reach its member
  kKeep = 16,      // set, name, value: kept under that name, with the set
};

struct Entry {
  EntryKind kind = EntryKind::kHeader;
  std::string uid, name, value;
  SetParams params;
  Progress progress;
  uint32_t set = 0, member = 0;
  int32_t number = 0;
  int32_t lease = 0;
  int64_t time = 0;
  bool succeeded = false;
  std::string error;
  std::vector<Shard> due;
  uint32_t fresh = 0;

  bool operator==(const Entry&) const = default;
};

void PutEntry(std::string& out, const Entry& entry);
// The next entry; reader.ok() is false when there is none.
Entry ReadEntry(ByteReader& reader);

// Far enough from the ends that differences and sums of times are numbers too.
int64_t ReadTime(ByteReader& reader);
void PutParams(std::string& out, const SetParams& params);
SetParams ReadParams(ByteReader& reader);
void PutProgress(std::string& out, const Progress& progress);
Progress ReadProgress(ByteReader& reader);

// Bounds with room above them, so that sums of what was read are numbers too.
inline constexpr int64_t kMostRecords = int64_t{1} << 60;
inline constexpr int64_t kMostEpoch = int64_t{1} << 60;
// A lease with shuffled records names each.
inline constexpr int64_t kMostShuffled = int64_t{1} << 20;

// What is wrong with them, or "".
std::string ProblemWith(const SetParams& params);

}  // namespace ledger
