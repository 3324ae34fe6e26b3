#include "ledger/entry.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/strings.h"

namespace ledger {
namespace {

constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max();

void PutShard(std::string& out, Shard shard) {
  PutNumber(out, static_cast<uint64_t>(shard.epoch));
  PutNumber(out, static_cast<uint64_t>(shard.position));
}

Shard ReadShard(ByteReader& reader) {
  Shard shard;
  shard.epoch = reader.Between(1, kMostEpoch);
  shard.position = reader.Between(0, kMostRecords);
  return shard;
}

uint32_t ReadIndex(ByteReader& reader) { return static_cast<uint32_t>(reader.Between(0, kMost32)); }

}  // namespace

std::string ProblemWith(const SetParams& params) {
  if (params.name.empty()) return "a data set has no name";
  if (params.name.size() > 1024) return "the name of a data set is longer than 1024 bytes";
  // Also what keeps a name from looking like a frame of the log.
  if (base::OneLine(params.name, 4096) != params.name) {
    return fmt::format("the name of data set {} has a control character",
                       base::OneLine(params.name));
  }
  const auto bad = [&](std::string_view what, int64_t value) {
    return fmt::format("data set {}: {} {}", params.name, what, value);
  };
  if (params.size < 1 || params.size > kMostRecords) return bad("number of records", params.size);
  if (params.shard_size < 1 || params.shard_size > kMostRecords) {
    return bad("records per shard", params.shard_size);
  }
  if (params.shuffle_records && params.shard_size > kMostShuffled) {
    return fmt::format("data set {}: {} records per shard are too many to be shuffled (at most {})",
                       params.name, params.shard_size, kMostShuffled);
  }
  if (params.epochs < 0) return bad("number of epochs", params.epochs);
  return "";
}

int64_t ReadTime(ByteReader& reader) {
  const int64_t time = reader.Signed();
  if (time >= -(int64_t{1} << 60) && time <= int64_t{1} << 60) return time;
  reader.Fail();
  return 0;
}

void PutParams(std::string& out, const SetParams& params) {
  PutText(out, params.name);
  PutNumber(out, static_cast<uint64_t>(params.size));
  PutNumber(out, static_cast<uint64_t>(params.shard_size));
  PutNumber(out, static_cast<uint64_t>(params.epochs));
  PutNumber(out, params.shuffle_shards);
  PutNumber(out, params.shuffle_records);
  PutNumber(out, params.barrier);
  PutNumber(out, params.seed);
  PutSigned(out, params.task_type);
}

SetParams ReadParams(ByteReader& reader) {
  SetParams params;
  params.name = reader.Text();
  params.size = reader.Between(1, kMostRecords);
  params.shard_size = reader.Between(1, kMostRecords);
  params.epochs = static_cast<int32_t>(reader.Between(0, kMost32));
  params.shuffle_shards = reader.Flag();
  params.shuffle_records = reader.Flag();
  params.barrier = reader.Flag();
  params.seed = reader.Number();
  const int64_t type = reader.Signed();
  if (type < std::numeric_limits<int32_t>::min() || type > kMost32) reader.Fail();
  params.task_type = static_cast<int32_t>(type);
  if (reader.ok() && !ProblemWith(params).empty()) reader.Fail();
  return params;
}

void PutProgress(std::string& out, const Progress& progress) {
  PutShard(out, progress.cursor);
  PutNumber(out, progress.due.size());
  for (const Progress::Due& due : progress.due) {
    PutShard(out, due.shard);
    PutNumber(out, static_cast<uint64_t>(due.errors));
  }
  PutNumber(out, progress.quarantined.size());
  for (const Progress::Quarantined& quarantined : progress.quarantined) {
    PutShard(out, quarantined.shard);
    PutText(out, quarantined.error);
  }
}

Progress ReadProgress(ByteReader& reader) {
  Progress progress;
  progress.cursor = ReadShard(reader);
  const size_t due = reader.Count();
  for (size_t i = 0; i < due && reader.ok(); ++i) {
    const Shard shard = ReadShard(reader);
    progress.due.push_back({shard, static_cast<int32_t>(reader.Between(0, kMost32))});
  }
  const size_t quarantined = reader.Count();
  for (size_t i = 0; i < quarantined && reader.ok(); ++i) {
    const Shard shard = ReadShard(reader);
    progress.quarantined.push_back({shard, std::string(reader.Text())});
  }
  return progress;
}

void PutEntry(std::string& out, const Entry& entry) {
  out.push_back(static_cast<char>(entry.kind));
  switch (entry.kind) {
    case EntryKind::kHeader:
      PutText(out, entry.uid);
      PutText(out, entry.name);
      return;
    case EntryKind::kRegister:
      PutParams(out, entry.params);
      return;
    case EntryKind::kJoin:
      PutText(out, entry.name);
      PutNumber(out, static_cast<uint64_t>(entry.number));
      PutSigned(out, entry.time);
      return;
    case EntryKind::kTake:
      PutNumber(out, entry.set);
      PutNumber(out, entry.member);
      PutSigned(out, entry.time);
      PutNumber(out, entry.due.size());
      for (const Shard& shard : entry.due) PutShard(out, shard);
      PutNumber(out, entry.fresh);
      return;
    case EntryKind::kDone:
    case EntryKind::kDouble:
    case EntryKind::kGiveBack:
      PutNumber(out, static_cast<uint64_t>(entry.lease));
      PutSigned(out, entry.time);
      return;
    case EntryKind::kFailed:
      PutNumber(out, static_cast<uint64_t>(entry.lease));
      PutSigned(out, entry.time);
      PutText(out, entry.error);
      return;
    case EntryKind::kTellEnd:
      PutNumber(out, entry.member);
      PutNumber(out, entry.set);
      return;
    case EntryKind::kLeave:
      PutNumber(out, entry.member);
      PutNumber(out, entry.succeeded);
      PutSigned(out, entry.time);
      return;
    case EntryKind::kExpire:
      PutNumber(out, entry.member);
      PutSigned(out, entry.time);
      return;
    case EntryKind::kCut:
      PutNumber(out, entry.member);
      return;
    case EntryKind::kAway:
      PutSigned(out, entry.time);
      return;
    case EntryKind::kRestore:
      PutParams(out, entry.params);
      PutProgress(out, entry.progress);
      return;
    case EntryKind::kReset:
      PutNumber(out, entry.set);
      return;
    case EntryKind::kKeep:
      PutNumber(out, entry.set);
      PutText(out, entry.name);
      PutText(out, entry.value);
      return;
  }
}

Entry ReadEntry(ByteReader& reader) {
  Entry entry;
  entry.kind = static_cast<EntryKind>(reader.Between(1, 16));
  switch (entry.kind) {
    case EntryKind::kHeader:
      entry.uid = reader.Text();
      entry.name = reader.Text();
      break;
    case EntryKind::kRegister:
      entry.params = ReadParams(reader);
      break;
    case EntryKind::kJoin:
      entry.name = reader.Text();
      entry.number = static_cast<int32_t>(reader.Between(0, kMost32));
      entry.time = ReadTime(reader);
      break;
    case EntryKind::kTake: {
      entry.set = ReadIndex(reader);
      entry.member = ReadIndex(reader);
      entry.time = ReadTime(reader);
      const size_t count = reader.Count();
      for (size_t i = 0; i < count && reader.ok(); ++i) entry.due.push_back(ReadShard(reader));
      entry.fresh = ReadIndex(reader);
      break;
    }
    case EntryKind::kDone:
    case EntryKind::kDouble:
    case EntryKind::kGiveBack:
      entry.lease = static_cast<int32_t>(reader.Between(1, kMost32));
      entry.time = ReadTime(reader);
      break;
    case EntryKind::kFailed:
      entry.lease = static_cast<int32_t>(reader.Between(1, kMost32));
      entry.time = ReadTime(reader);
      entry.error = reader.Text();
      break;
    case EntryKind::kTellEnd:
      entry.member = ReadIndex(reader);
      entry.set = ReadIndex(reader);
      break;
    case EntryKind::kLeave:
      entry.member = ReadIndex(reader);
      entry.succeeded = reader.Flag();
      entry.time = ReadTime(reader);
      break;
    case EntryKind::kExpire:
      entry.member = ReadIndex(reader);
      entry.time = ReadTime(reader);
      break;
    case EntryKind::kCut:
      entry.member = ReadIndex(reader);
      break;
    case EntryKind::kAway:
      entry.time = ReadTime(reader);
      break;
    case EntryKind::kRestore:
      entry.params = ReadParams(reader);
      entry.progress = ReadProgress(reader);
      break;
    case EntryKind::kReset:
      entry.set = ReadIndex(reader);
      break;
    case EntryKind::kKeep:
      entry.set = ReadIndex(reader);
      entry.name = reader.Text();
      entry.value = reader.Text();
      break;
  }
  return entry;
}

}  // namespace ledger
