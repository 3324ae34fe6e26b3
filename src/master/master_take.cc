// Calls for shards: answered at once, or held until there is something to say.
//
// A call is tried when it comes, and again with every change (ServeWaiting, at the end of each
// turn), until one try has an answer. A published client can only be given a shard or the end; the
// ledger notes who was told the end before anybody is.

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"
#include "master/master.h"

namespace master {
namespace {

using base::Time;
using ledger::MemberState;
using Next = Taken::Next;

}  // namespace

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

// Time.

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
