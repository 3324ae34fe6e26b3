// Reports of shards, and sets as a whole: each a change of the ledger and its answer.

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/strings.h"
#include "master/master.h"

namespace master {

void Master::Report(Reports reports, std::function<void(Counts)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  Counts counts;
  for (const int32_t lease : reports.done) Settle(lease, "", counts, turn);
  for (const auto& [lease, error] : reports.failed) Settle(lease, error, counts, turn);
  std::ranges::copy_if(reports.holding, std::back_inserter(counts.over),
                       [&](int32_t lease) { return ledger_.IsOver(lease); });
  turn.thens.push_back([answer = std::move(answer), counts = std::move(counts)]() mutable {
    answer(std::move(counts));
  });
  End(turn);
}

void Master::Settle(int32_t lease, const std::string& error, Counts& counts, Turn& turn) {
  using ledger::Reported;
  doubtful_.erase(lease);
  if (!doubtful_.empty() && error.empty()) {
    const auto [member, set] = ledger_.HolderOf(lease);
    // Passed over: the answer that had it got lost when the master went away.
    for (const int32_t other : ledger_.LeasesOf(member, set))
      if (other < lease && doubtful_.contains(other)) GiveBack(other, turn);
  }
  switch (ledger_.Report(lease, error, turn.now, turn.batch)) {
    case Reported::kDone:
    case Reported::kLate:
      ++counts.counted;
      return;
    case Reported::kDouble:
      ++counts.already;
      return;
    case Reported::kUnknown:
      ++counts.unknown;
      EventOnce("unknown shard", "ShardUnknown",
                fmt::format("shard {} was reported, and was never handed out", lease));
      return;
    case Reported::kReturned:
      Event("ShardFailed", fmt::format("shard {} failed and will be handed out again: {}", lease,
                                       base::OneLine(base::CleanUtf8(error), 200)));
      return;
    case Reported::kQuarantined:
      Event("ShardQuarantined",
            fmt::format("shard {} failed {} times and is set aside: {}", lease,
                        ledger::Ledger::kMostErrors, base::OneLine(base::CleanUtf8(error), 200)));
      return;
  }
}

// Sets.

void Master::Register(const ledger::SetParams& params,
                      std::function<void(base::Result<ledger::SetParams>)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  const auto registered = ledger_.Register(params, turn.batch);
  base::Result<ledger::SetParams> in_force = params;
  NoteSets();
  if (!registered) {
    in_force = std::unexpected(registered.error());
    EventOnce("refused " + params.name, "DatasetRefused",
              fmt::format("data set {}: {}", Quoted(params.name), registered.error().text()));
  } else if (*registered == ledger::Registered::kConflict) {
    for (const ledger::SetView& set : ledger_.Sets())
      if (set.params.name == params.name) in_force = set.params;
    EventOnce(
        "conflict " + params.name, "DatasetConflict",
        fmt::format(
            "data set {} is registered again with other parameters ({} records in shards of {}, {} "
            "epochs); the first stay ({} records in shards of {}, {} epochs)",
            Quoted(params.name), params.size, params.shard_size, params.epochs, in_force->size,
            in_force->shard_size, in_force->epochs));
  }
  turn.thens.push_back(
      [answer = std::move(answer), in_force = std::move(in_force)] { answer(in_force); });
  End(turn);
}

void Master::Restore(const std::string& set, const std::string& checkpoint,
                     std::function<void(base::Result<>)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  auto restored = ledger_.Restore(set, checkpoint, turn.batch);
  NoteSets();
  turn.urgent = true;
  if (!restored)
    EventOnce("restore " + restored.error().text(), "CheckpointRefused",
              "a checkpoint of shards: " + restored.error().text());
  turn.thens.push_back(
      [answer = std::move(answer), restored = std::move(restored)] { answer(restored); });
  End(turn);
}

void Master::Reset(const std::string& set, std::function<void(bool)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  const bool known = ledger_.Reset(set, turn.batch);
  turn.urgent = true;
  turn.thens.push_back([answer = std::move(answer), known] { answer(known); });
  End(turn);
}

void Master::Keep(int32_t number, const std::string& set, const std::vector<int32_t>& leases,
                  const std::string& key, const std::string& value,
                  std::function<void(base::Result<bool>)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  const Member* member = Find(number);
  base::Result<bool> kept = ledger_.Keep(set, member ? member->name : std::string(), leases, key,
                                         value, turn.now, turn.batch);
  if (kept && *kept)
    for (const int32_t lease : leases) doubtful_.erase(lease);
  turn.thens.push_back([answer = std::move(answer), kept = std::move(kept)] { answer(kept); });
  End(turn);
}

void Master::Kept(const std::string& set, const std::string& key,
                  std::function<void(std::optional<std::string>)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  std::optional<std::string> value;
  if (const std::string* kept = ledger_.Kept(set, key)) value = *kept;
  turn.thens.push_back([answer = std::move(answer), value = std::move(value)]() mutable {
    answer(std::move(value));
  });
  End(turn);
}

void Master::Checkpoint(const std::string& set, std::function<void(std::string)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  turn.thens.push_back([answer = std::move(answer), text = ledger_.Checkpoint(set)]() mutable {
    answer(std::move(text));
  });
  End(turn);
}

void Master::Look(int32_t number, const std::string& set,
                  std::function<void(ledger::Standing)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  const Member* member = Find(number);
  turn.thens.push_back(
      [answer = std::move(answer), standing = ledger_.Look(set, member ? member->name : "")] {
        answer(standing);
      });
  End(turn);
}

}  // namespace master
