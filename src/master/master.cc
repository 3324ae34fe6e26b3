#include "master/master.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "io/clock.h"

namespace master {
namespace {

using base::Time;
using ledger::MemberState;
using Next = Taken::Next;

constexpr size_t kMostEvents = 1000;  // that a host who does not read has waiting

bool Lives(MemberState state) {
  return state == MemberState::kLive || state == MemberState::kLeaving;
}

// For events: what a client sent may be anything.
std::string Quoted(std::string_view text) {
  return "'" + base::OneLine(base::CleanUtf8(text)) + "'";
}

std::string Shards(int64_t count) {
  return fmt::format("{} shard{}", count, count == 1 ? "" : "s");
}

Master::Options Complete(Master::Options options) {
  if (!options.now) options.now = io::Now;
  return options;
}

}  // namespace

Master::Master(LedgerFile::Opened opened, std::string directory, Options options)
    : directory_(std::move(directory)),
      options_(Complete(std::move(options))),
      ledger_(std::move(opened.ledger)),
      file_(std::move(opened.file)) {
  if (opened.is_new) return;
  NoteSets();
  if (const auto bytes = io::ReadFile(directory_ + "/syncs")) {
    const auto json = base::ParseJson(*bytes);
    if (auto syncs = json ? Syncs::FromJson(*json) : std::unexpected(json.error()))
      syncs_ = std::move(*syncs);
  }
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  for (const ledger::MemberView& member : ledger_.Members()) {
    if (!member.here) continue;
    for (const auto& [set, task_type] : sets_)
      for (const int32_t lease : ledger_.LeasesOf(member.name, set)) doubtful_[lease] = member.name;
  }
  ledger_.Away(turn.now, turn.batch);
  turn.urgent = true;
  if (opened.cut_off > 0)
    Event("LedgerRepaired",
          fmt::format("the last {} bytes of the ledger were not whole, and nobody "
                      "had been answered for them: cut off",
                      opened.cut_off));
  End(turn);
}

Master::~Master() = default;

Master::Turn Master::Begin() const {
  return {.now = options_.now(), .batch = {}, .thens = {}, .urgent = false};
}

void Master::End(Turn& turn) {
  const bool changed = !turn.batch.empty();
  if (changed) ServeWaiting(turn);
  if (changed || !turn.thens.empty())
    file_->Append(turn.batch, [thens = std::move(turn.thens)]() mutable {
      for (LedgerFile::Then& then : thens) then();
    });
  if (!changed) return;
  if (file_->WantsSnapshot()) file_->Snapshot(ledger_.Snapshot(file_->NextOffset()));
  const Pulse before = std::exchange(pulse_, PulseOf());
  const bool urgent = turn.urgent || pulse_ != before;
  if (urgent || !dirty_) options_.changed(urgent);
  dirty_ = true;
}

Master::Pulse Master::PulseOf() const {
  Pulse pulse{.complete = ledger_.Complete(), .todo = false};
  for (const auto& [set, task_type] : sets_) pulse.todo |= ledger_.Look(set, "").todo > 0;
  return pulse;
}

const Master::Member* Master::Find(int32_t number) const {
  const auto found = members_.find(number);
  return found == members_.end() ? nullptr : &found->second;
}

void Master::NoteSets() {
  for (const ledger::SetView& set : ledger_.Sets()) sets_[set.params.name] = set.params.task_type;
}

// Members.

void Master::Heed(const ledger::HostMessage& message) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  std::set<std::string> named;
  members_.clear();
  for (const ledger::HostMember& each : message.members) {
    named.insert(each.name);
    members_[each.number] = {.name = each.name, .state = each.state};
    if (Lives(each.state))
      ledger_.Join(each.name, each.number, turn.now, turn.batch);
    else
      Depart(each.name, each.state == MemberState::kSucceeded, turn);
  }
  for (const ledger::MemberView& member : ledger_.Members())
    if (member.here && !named.contains(member.name)) Depart(member.name, false, turn);
  if (syncs_.Keep(Workers())) SaveSyncs();
  ServeWaiting(turn);  // some wait to be named
  End(turn);
}

void Master::Depart(const std::string& name, bool succeeded, Turn& turn) {
  // What may never have reached it was not trained, whatever it was told.
  std::vector<int32_t> doubtful;
  for (const auto& [lease, member] : doubtful_)
    if (member == name) doubtful.push_back(lease);
  for (const int32_t lease : doubtful) GiveBack(lease, turn);
  const auto left = ledger_.Leave(name, succeeded, turn.now, turn.batch);
  if (left.returned > 0)
    Event("ShardsReturned",
          fmt::format("{} of {} will be handed out again", Shards(left.returned), name), false);
  if (left.assumed > 0)
    Event("ShardsAssumed", fmt::format("{} ended with success after the end of the data without "
                                       "reporting {}: taken as trained",
                                       name, Shards(left.assumed)));
}

bool Master::Serves(int32_t number) const {
  const std::lock_guard lock(mutex_);
  const Member* member = Find(number);
  return member && Lives(member->state);
}

size_t Master::Held() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void Master::Heard(int32_t number) {
  const std::lock_guard lock(mutex_);
  if (const Member* member = Find(number)) ledger_.Heard(member->name, options_.now());
}

void Master::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
}

// Shards.

uint64_t Master::Take(Ask ask, std::function<void(Taken)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  Waiting waiting{.ask = std::move(ask), .since = turn.now, .answer = std::move(answer)};
  const uint64_t ticket = next_ticket_++;
  if (auto taken = Try(waiting.ask, waiting.since, turn)) {
    Answer(waiting, std::move(*taken), turn);
  } else {
    waiting_.emplace(ticket, std::move(waiting));
    options_.wake();
  }
  End(turn);
  return ticket;
}

void Master::Answer(Waiting& waiting, Taken taken, Turn& turn) {
  turn.thens.push_back([answer = std::move(waiting.answer), taken = std::move(taken)]() mutable {
    answer(std::move(taken));
  });
}

std::optional<Taken> Master::Try(const Ask& ask, Time since, Turn& turn) {
  const Member* member = Find(ask.number);
  if (!member || !Lives(member->state)) return TryUnknown(ask, since, turn);
  ledger_.Heard(member->name, turn.now);
  std::vector<ledger::Lease> leases;
  if (ask.ours) leases = LostOnTheWay(member->name, ask);
  if (member->state == MemberState::kLeaving) {
    for (const ledger::Lease& lease : leases) GiveBack(lease.id, turn);
    TellEnd(member->name, ask.set, turn);
    return Taken{.next = Next::kEnd, .leaving = true};
  }
  if (leases.size() > ask.most) leases.resize(ask.most);  // the others next time
  if (leases.empty()) leases = ledger_.Take(ask.set, member->name, ask.most, turn.now, turn.batch);
  if (leases.empty()) return TryNone(*member, ask, since, turn);
  return Taken{.next = Next::kTaken, .leases = std::move(leases), .task_type = sets_.at(ask.set)};
}

// There is nothing to hand out.
std::optional<Taken> Master::TryNone(const Member& member, const Ask& ask, Time since, Turn& turn) {
  const ledger::Standing standing = ledger_.Look(ask.set, member.name);
  const base::Duration waited = turn.now - since;
  if (!standing.known) {
    if (waited < options_.introduction) return std::nullopt;
    const std::string text = fmt::format(
        "nobody registered the data set {}; one of 0 records or 0 epochs is not "
        "registered by the published clients",
        Quoted(ask.set));
    EventOnce("no set " + ask.set, "DatasetUnknown", member.name + ": " + text);
    if (ask.ours) return Taken{.next = Next::kNoSet, .text = text};
    turn.urgent = true;
    ledger_.Cut(member.name, turn.batch);  // should there be data later, it was misled
    return Taken{.next = Next::kEnd};
  }
  if (standing.complete) {
    TellEnd(member.name, ask.set, turn);
    return Taken{.next = Next::kEnd};
  }
  if (standing.held > 0) {
    TellEnd(member.name, ask.set, turn);
    return Taken{.next = ask.ours ? Next::kDrain : Next::kEnd};
  }
  if (ask.ours && waited >= options_.longest_hold) return Taken{.next = Next::kWait};
  return std::nullopt;
}

std::optional<Taken> Master::TryUnknown(const Ask& ask, Time since, const Turn& turn) {
  const Member* ended = Find(ask.number);
  if (!ended && turn.now - since < options_.introduction) return std::nullopt;
  const std::string text =
      ended ? fmt::format("{} has ended, and asks for data", ended->name)
            : fmt::format("number {} asks for data of {}, and is no member of this job", ask.number,
                          Quoted(ask.set));
  EventOnce(fmt::format("number {}", ask.number), "MemberUnknown", text);
  return Taken{.next = Next::kDenied, .text = text};
}

void Master::TellEnd(const std::string& member, const std::string& set, Turn& turn) {
  ledger_.TellEnd(member, set, turn.batch);
  turn.urgent = true;
}

// What our client was given and does not name.
std::vector<ledger::Lease> Master::LostOnTheWay(const std::string& member, const Ask& ask) {
  std::vector<ledger::Lease> lost;
  const std::set<int32_t> holding(ask.holding.begin(), ask.holding.end());
  for (const int32_t lease : ledger_.LeasesOf(member, ask.set)) {
    doubtful_.erase(lease);  // from here on it is known
    if (!holding.contains(lease)) lost.push_back(ledger_.LeaseAt(lease));
  }
  return lost;
}

void Master::ServeWaiting(Turn& turn) {
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    auto taken = Try(each->second.ask, each->second.since, turn);
    if (taken) Answer(each->second, std::move(*taken), turn);
    each = taken ? waiting_.erase(each) : std::next(each);
  }
}

void Master::Cancel(uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(ticket);
  if (found == waiting_.end()) return;
  Turn turn = Begin();
  Answer(found->second, {.next = Next::kCancelled}, turn);
  waiting_.erase(found);
  End(turn);
}

void Master::Lost(int32_t number, const std::vector<int32_t>& leases) {
  const std::lock_guard lock(mutex_);
  const Member* member = Find(number);
  if (stopping_ || !member || !Lives(member->state)) return;
  Turn turn = Begin();
  ledger_.Cut(member->name, turn.batch);
  turn.urgent = true;
  for (const int32_t lease : leases) GiveBack(lease, turn);
  End(turn);
}

void Master::GiveBack(int32_t lease, Turn& turn) {
  doubtful_.erase(lease);
  ledger_.GiveBack(lease, turn.now, turn.batch);
}

void Master::Report(Reports reports, std::function<void(Counts)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  Counts counts;
  for (const int32_t lease : reports.done) Settle(lease, "", counts, turn);
  for (const auto& [lease, error] : reports.failed) Settle(lease, error, counts, turn);
  turn.thens.push_back([answer = std::move(answer), counts] { answer(counts); });
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

// Workers that wait for each other.

std::set<int32_t> Master::Workers() const {
  std::set<int32_t> workers;
  for (const auto& [number, member] : members_)
    if (Lives(member.state) && member.name.starts_with("worker-")) workers.insert(number);
  return workers;
}

void Master::SaveSyncs() const {
  base::IgnoreError(
      io::ReplaceFileDurably(directory_ + "/syncs", base::CompactJson(syncs_.ToJson())),
      "it is needed only by a master that starts again, and then the ledger's own writes fail too");
}

void Master::WorkerSync(const std::string& name, int32_t number,
                        std::function<void(std::optional<bool>)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  std::optional<bool> ready;
  if (const Member* member = Find(number); member && Lives(member->state)) {
    ledger_.Heard(member->name, turn.now);
    const Syncs before = syncs_;
    ready = syncs_.Arrive(name, number, Workers());
    if (syncs_ != before) SaveSyncs();
  }
  turn.thens.push_back([answer = std::move(answer), ready] { answer(ready); });
  End(turn);
}

void Master::WaitSync(const std::string& name, bool notify, std::function<void(bool)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  const Syncs before = syncs_;
  const bool ready = syncs_.Wait(name, notify);
  if (syncs_ != before) SaveSyncs();
  turn.thens.push_back([answer = std::move(answer), ready] { answer(ready); });
  End(turn);
}

void Master::DeleteSync(const std::string& name, bool all, std::function<void()> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  all ? syncs_.DeleteAll() : syncs_.Delete(name);
  SaveSyncs();
  turn.thens.push_back([answer = std::move(answer)] { answer(); });
  End(turn);
}

// What the host hears.

void Master::Event(std::string reason, std::string message, bool warning) {
  if (events_.size() < kMostEvents)
    events_.push_back(
        {.reason = std::move(reason), .message = std::move(message), .warning = warning});
  if (!dirty_) options_.changed(false);
  dirty_ = true;
}

void Master::EventOnce(const std::string& key, const std::string& reason,
                       const std::string& message) {
  if (once_.size() < kMostEvents && once_.insert(key).second) Event(reason, message);
}

void Master::Once(const std::string& key, const std::string& reason, const std::string& message) {
  const std::lock_guard lock(mutex_);
  EventOnce(key, reason, message);
}

void Master::Report(std::function<void(ledger::DataReport)> answer) {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  ledger::DataReport data{.registered = false, .complete = ledger_.Complete()};
  for (const ledger::SetView& set : ledger_.Sets()) {
    data.registered = true;
    const ledger::Standing standing = ledger_.Look(set.params.name, "");
    data.todo += standing.todo;
    data.doing += standing.doing;
    const bool endless = data.records_total < 0 || standing.records_total < 0;
    data.records_left = endless ? -1 : data.records_left + standing.records_left;
    data.records_total = endless ? -1 : data.records_total + standing.records_total;
    data.sets.push_back({.name = set.params.name,
                         .epoch = set.epoch,
                         .epochs = set.params.epochs,
                         .todo = set.todo,
                         .doing = set.doing,
                         .done = set.done,
                         .records_done = set.records_done});
  }
  for (const ledger::QuarantineView& each : ledger_.Quarantined())
    data.quarantined.push_back({.set = each.set,
                                .epoch = each.epoch,
                                .start = each.start,
                                .end = each.end,
                                .error = each.error});
  data.misled = ledger_.Misled();
  for (const ledger::MemberView& member : ledger_.Members())
    if (member.here || member.done > 0)
      data.members.push_back({.name = member.name,
                              .doing = member.doing,
                              .done = member.done,
                              .rate = member.rate,
                              .last = member.last});
  data.events = std::exchange(events_, {});
  dirty_ = false;
  turn.thens.push_back(
      [answer = std::move(answer), data = std::move(data)]() mutable { answer(std::move(data)); });
  End(turn);
}

// When the wait must have an answer: nobody is held for long who is not known, or asks for a set
// that is not; a published client that is held for shards is held for as long as it takes.
Time Master::DeadlineOf(const Waiting& waiting) const {
  const Member* member = Find(waiting.ask.number);
  if (!member || !ledger_.Look(waiting.ask.set, member->name).known)
    return waiting.since + options_.introduction;
  return waiting.ask.ours ? waiting.since + options_.longest_hold : Time::max();
}

Time Master::NextTick() const {
  const std::lock_guard lock(mutex_);
  Time next = ledger_.NextExpiry();
  for (const auto& [ticket, waiting] : waiting_) next = std::min(next, DeadlineOf(waiting));
  return next;
}

void Master::Tick() {
  const std::lock_guard lock(mutex_);
  Turn turn = Begin();
  for (const auto& [ticket, waiting] : waiting_)  // who waits for us is not silent
    if (const Member* member = Find(waiting.ask.number)) ledger_.Heard(member->name, turn.now);
  for (const auto& expired : ledger_.Expire(turn.now, turn.batch))
    Event("MemberSilent",
          fmt::format("nothing was heard of {} for {} s: its {} will be handed out again",
                      expired.member,
                      std::chrono::duration_cast<std::chrono::seconds>(expired.silence).count(),
                      Shards(expired.shards)));
  ServeWaiting(turn);
  End(turn);
}

}  // namespace master
