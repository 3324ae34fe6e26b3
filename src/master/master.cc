// How a change is made: a turn begins, the ledger is changed and answers are put down for when that
// is durable, and the turn ends, which tries the calls that wait (master_take.cc), hands all of it
// to the file and wakes the host. Here are also who is a member, and what the host hears.

#include "master/master.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "io/clock.h"

namespace master {
namespace {

using ledger::MemberState;

constexpr size_t kMostEvents = 1000;  // that a host who does not read has waiting

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

std::string Master::Quoted(std::string_view text) {
  return "'" + base::OneLine(base::CleanUtf8(text)) + "'";
}

std::string Master::Shards(int64_t count) {
  return fmt::format("{} shard{}", count, count == 1 ? "" : "s");
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

}  // namespace master
