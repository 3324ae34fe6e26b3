// The state of a set as the text that ElasticDL 1.0.0 writes: keys and their order, "v1.0", are
// theirs; the key "trainyard" holds the same exactly and in little room, and is what we read when
// it is there. A set that would list more than 50,000 shards (theirs never does) lists none and
// says another version, so that their master refuses it instead of losing data.
//
//   {"dataset_name":"iris","todo":[[64,128],[128,150]],"doing":[[0,64]],"current_epoch":1,
//    "num_epochs":2,"records_per_task":64,"dataset_size":150,"shuffle_shards":false,
//    "version":"v1.0","current_subepoch":0,"trainyard":{...}}

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"
#include "ledger/ledger.h"
#include "ledger/permutation.h"

namespace ledger {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr std::string_view kTheirs = "v1.0";
constexpr std::string_view kCompact = "v1.0-compact";
constexpr int64_t kMostListed = 50'000;
constexpr size_t kMostText = size_t{64} << 20;
constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMost64 = std::numeric_limits<int64_t>::max();

// Readers of members that must be there.

Result<const Json*> Member(const Json& from, std::string_view key) {
  if (const Json* value = base::Find(from, key)) return value;
  return base::Invalid(fmt::format("{} is missing", key));
}

Result<int64_t> Whole(const Json& value, std::string_view what, int64_t least, int64_t most) {
  if (value.is_int64() && value.get_int64() >= least && value.get_int64() <= most) {
    return value.get_int64();
  }
  return base::Invalid(fmt::format("{} is not a number from {} to {}", what, least, most));
}

Result<int64_t> Int(const Json& from, std::string_view key, int64_t least, int64_t most) {
  return Whole(*TRY(Member(from, key)), key, least, most);
}

Result<bool> Bool(const Json& from, std::string_view key) {
  const Json* value = TRY(Member(from, key));
  if (!value->is_bool()) return base::Invalid(fmt::format("{} is not true or false", key));
  return value->get_bool();
}

Result<const JsonArray*> List(const Json& from, std::string_view key) {
  const Json* value = TRY(Member(from, key));
  if (!value->is_array()) return base::Invalid(fmt::format("{} is not a list", key));
  return &value->get_array();
}

Result<SetParams> ReadTheirParams(const Json& json) {
  SetParams params;
  const Json* name = TRY(Member(json, "dataset_name"));
  if (!name->is_string()) return base::Invalid("dataset_name is not a text");
  params.name = name->get_string();
  params.size = TRY(Int(json, "dataset_size", 1, kMost64));
  params.shard_size = TRY(Int(json, "records_per_task", 1, kMost64));
  // As theirs: no number of epochs means without end.
  params.epochs =
      static_cast<int32_t>(std::max<int64_t>(0, TRY(Int(json, "num_epochs", -kMost32, kMost32))));
  params.shuffle_shards = TRY(Bool(json, "shuffle_shards"));
  return params;
}

Result<Shard> ReadShard(const Json& from, std::string_view key, Json* last) {
  if (!from.is_array() || from.get_array().size() != 3) {
    return base::Invalid(fmt::format("{} has an element that is not a list of three", key));
  }
  const JsonArray& array = from.get_array();
  *last = array[2];
  return Shard{.epoch = TRY(Whole(array[0], key, 1, kMost64)),
               .position = TRY(Whole(array[1], key, 0, kMost64))};
}

Result<Progress> ReadOurs(const Json& ours, SetParams& params) {
  params.shuffle_records = TRY(Bool(ours, "shuffle_records"));
  params.barrier = TRY(Bool(ours, "barrier"));
  params.task_type = static_cast<int32_t>(TRY(Int(ours, "task_type", -kMost32, kMost32)));
  const Json* seed = TRY(Member(ours, "seed"));
  if (seed->is_uint64()) {
    params.seed = seed->get_uint64();
  } else {
    params.seed = static_cast<uint64_t>(TRY(Whole(*seed, "seed", 0, kMost64)));
  }
  Progress progress;
  progress.cursor.epoch = TRY(Int(ours, "epoch", 1, kMost64));
  progress.cursor.position = TRY(Int(ours, "position", 0, kMost64));
  Json last;
  for (const Json& element : *TRY(List(ours, "due"))) {
    const Shard shard = TRY(ReadShard(element, "due", &last));
    progress.due.push_back({shard, static_cast<int32_t>(TRY(Whole(last, "due", 0, kMost32)))});
  }
  for (const Json& element : *TRY(List(ours, "quarantined"))) {
    const Shard shard = TRY(ReadShard(element, "quarantined", &last));
    if (!last.is_string()) return base::Invalid("an error in quarantined is not a text");
    progress.quarantined.push_back({shard, base::OneLine(last.get_string(), 1024)});
  }
  return progress;
}

// Their lists say which ranges are left of the current epoch, and may have a range more than once:
// what came back late from an epoch before.
Result<Progress> ReadTheirs(const Json& json, const SetParams& params) {
  const int64_t shards = params.size / params.shard_size + (params.size % params.shard_size != 0);
  if (shards > kMostListed) {
    return base::Invalid(fmt::format(
        "the data set has {} shards: a checkpoint in sub-epochs does not say what is left",
        shards));
  }
  const int64_t most = params.epochs == 0 ? kMost64 : params.epochs;
  const int64_t epoch = TRY(Int(json, "current_epoch", 0, most));
  Progress progress;
  std::map<int64_t, int64_t> times;  // by index
  for (const std::string_view key : {"todo", "doing"}) {
    for (const Json& range : *TRY(List(json, key))) {
      if (!range.is_array() || range.get_array().size() != 2) {
        return base::Invalid(fmt::format("{} has an element that is no range", key));
      }
      const int64_t start = TRY(Whole(range.get_array()[0], key, 0, params.size));
      const int64_t end = TRY(Whole(range.get_array()[1], key, 0, params.size));
      const int64_t index = start / params.shard_size;
      if (start % params.shard_size != 0 || start >= params.size ||
          end - start != std::min(params.shard_size, params.size - start)) {
        return base::Invalid(fmt::format("{}: [{}, {}] is no shard of {} records", key, start, end,
                                         params.shard_size));
      }
      const int64_t of = epoch - times[index]++;
      if (of < 1) {
        return base::Invalid(fmt::format("{}: [{}, {}] is there more often than there were epochs",
                                         key, start, end));
      }
      const int64_t position =
          params.shuffle_shards
              ? Permutation(params.seed, static_cast<uint64_t>(of), shards).Inverse(index)
              : index;
      progress.due.push_back({{of, position}, 0});
    }
  }
  if (epoch == 0) return progress;  // theirs before the first shard was asked for
  progress.cursor = {epoch, shards};
  std::ranges::sort(progress.due, {}, &Progress::Due::shard);
  // What is left at the end was, as far as anybody can tell, never handed out.
  while (!progress.due.empty() && progress.cursor.position > 0 &&
         progress.due.back().shard == Shard{epoch, progress.cursor.position - 1}) {
    progress.due.pop_back();
    --progress.cursor.position;
  }
  return progress;
}

}  // namespace

std::string Ledger::Checkpoint(std::string_view name) const {
  const Set* set = FindSet(name);
  if (!set) return "";
  const SetParams& params = set->params;
  const auto range = [&](Shard shard) {
    const int64_t start = IndexAt(*set, shard) * params.shard_size;
    return JsonArray{start, std::min(start + params.shard_size, params.size)};
  };
  const auto listed = static_cast<int64_t>(set->due.size() + set->doing.size());
  const bool list = set->shards <= kMostListed && listed <= kMostListed;
  JsonArray todo, doing, due, quarantined;
  if (list) {
    for (const auto& [shard, errors] : set->due) todo.push_back(range(shard));
    for (Shard shard = set->cursor; shard.position < set->shards; ++shard.position) {
      todo.push_back(range(shard));
    }
    for (const auto& [shard, id] : set->doing) doing.push_back(range(shard));
  }
  // What is out is due: whoever has it trains a model that a restore puts aside.
  std::map<Shard, int32_t> left = set->due;
  for (const auto& [shard, id] : set->doing) left[shard] = out_.at(id).errors;
  for (const auto& [shard, errors] : left) {
    due.push_back(JsonArray{shard.epoch, shard.position, errors});
  }
  for (const auto& [shard, error] : set->quarantined) {
    quarantined.push_back(JsonArray{shard.epoch, shard.position, error});
  }
  return base::CompactJson(
      JsonObject{{"dataset_name", params.name},
                 {"todo", std::move(todo)},
                 {"doing", std::move(doing)},
                 {"current_epoch", set->cursor.epoch},
                 {"num_epochs", params.epochs},
                 {"records_per_task", params.shard_size},
                 {"dataset_size", params.size},
                 {"shuffle_shards", params.shuffle_shards},
                 {"version", list ? kTheirs : kCompact},
                 {"current_subepoch", 0},
                 {"trainyard", JsonObject{{"epoch", set->cursor.epoch},
                                          {"position", set->cursor.position},
                                          {"due", std::move(due)},
                                          {"quarantined", std::move(quarantined)},
                                          {"seed", params.seed},
                                          {"shuffle_records", params.shuffle_records},
                                          {"barrier", params.barrier},
                                          {"task_type", params.task_type}}}});
}

Result<std::pair<SetParams, Progress>> Ledger::FromCheckpoint(std::string_view text,
                                                              const Ledger& ledger) {
  if (text.size() > kMostText) return base::Invalid("it is larger than 64 MiB");
  const Json json = TRY(base::ParseJson(text));
  if (!json.is_object()) return base::Invalid("it is no JSON object");
  const std::string version = base::StringOr(json, "version");
  const Json* ours = base::Find(json, "trainyard");
  if (version != kTheirs && !(version == kCompact && ours)) {
    return base::Invalid(
        fmt::format("its version is \"{}\", not \"{}\"", base::OneLine(version), kTheirs));
  }
  SetParams params = TRY(ReadTheirParams(json));
  if (ours) {
    Progress progress = TRY_AS("trainyard", ReadOurs(*ours, params));
    return std::pair(std::move(params), std::move(progress));
  }
  if (const Set* set = ledger.FindSet(params.name)) {
    params.seed = set->params.seed;
    params.shuffle_records = set->params.shuffle_records;
    params.barrier = set->params.barrier;
    params.task_type = set->params.task_type;
  }
  Progress progress = TRY(ReadTheirs(json, params));
  return std::pair(std::move(params), std::move(progress));
}

Result<> Ledger::Restore(std::string_view name, std::string_view checkpoint, Batch& batch) {
  const auto doing = [&] {
    return name.empty() ? std::string("restore the data")
                        : "restore data set " + base::OneLine(name);
  };
  auto [params, progress] = TRY_AS(doing(), FromCheckpoint(checkpoint, *this));
  if (!name.empty() && params.name != name) {
    return base::Invalid(doing() + ": it is of data set " + base::OneLine(params.name));
  }
  TRY_AS(doing(), SetFrom(params, progress));
  Entry entry{.kind = EntryKind::kRestore};
  entry.params = std::move(params);
  entry.progress = std::move(progress);
  Commit(entry, batch);
  return {};
}

}  // namespace ledger
