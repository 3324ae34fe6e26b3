#include "backend/members.h"

#include <algorithm>
#include <cmath>

#include "core/elastic.h"
#include "core/endings.h"

namespace backend {

using api::ReplicaId;
using base::Time;
using core::Member;
using ledger::MemberState;

namespace {

// Parameter servers take no data.
bool IsMember(ReplicaId id) { return id.role != api::Role::kPs; }

MemberState StateOf(const core::ReplicaState& r) {
  if (core::HasEnded(r))
    return r.ending->code == 0 ? MemberState::kSucceeded : MemberState::kFailed;
  return r.leaving || r.deleting ? MemberState::kLeaving : MemberState::kLive;
}

std::string NameOf(const Member& member) { return core::MemberName(member.first, member.second); }

}  // namespace

void Members::See(const api::Job& job, core::Observed& observed) {
  std::erase_if(wanted_, [&](const Member& member) {
    return !core::IsAwaited(job, job.status, {.id = member.first, .attempt = member.second});
  });
  std::set<Member> there;
  for (core::ReplicaState& r : observed.replicas) {
    const Member member{r.id, r.attempt};
    wanted_.erase(member);
    if (!core::HasEnded(r)) there.insert(member);
    r.leaving = !core::HasEnded(r) && leaving_.contains(member);
  }
  std::erase_if(leaving_, [&](const auto& entry) { return !there.contains(entry.first); });
  seen_ = observed.replicas;
  Tell();
  observed.data = View();
  AddProgress(observed.progress);  // so that it agrees with the data
}

void Members::Tell() {
  std::vector<ledger::HostMember> members;
  const auto add = [&](ReplicaId id, int32_t attempt, MemberState state) {
    members.push_back({core::MemberName(id, attempt), core::WorkerNumber(id, attempt), state});
  };
  for (const core::ReplicaState& r : seen_) {
    if (IsMember(r.id)) add(r.id, r.attempt, StateOf(r));
  }
  for (const auto& [id, attempt] : wanted_) add(id, attempt, MemberState::kLive);
  master_.Tell(std::move(members));
}

core::DataView Members::View() const {
  const ledger::DataReport& data = master_.data();
  core::DataView out{.registered = data.registered,
                     .complete = data.complete,
                     .todo = data.todo,
                     .doing = data.doing,
                     .records_left = std::max<int64_t>(data.records_left, 0),
                     .records_total = std::max<int64_t>(data.records_total, 0),
                     .broken = master_.broken()};
  for (const ledger::SetReport& set : data.sets) out.done += set.done;
  for (const ledger::QuarantineReport& q : data.quarantined) out.quarantined += q.end - q.start;
  for (const std::string& name : data.misled) {
    if (const auto member = core::MemberFrom(name)) out.misled.insert(*member);
  }
  for (const core::ReplicaState& r : seen_) {
    const Member member{r.id, r.attempt};
    if (IsMember(r.id) && core::HasEnded(r) && !master_.Knows(NameOf(member), StateOf(r))) {
      out.unheard.insert(member);
    }
  }
  return out;
}

bool Members::MayStart(const core::Start& start) {
  const Member member{start.id, start.attempt};
  if (!IsMember(start.id) || master_.Knows(NameOf(member), MemberState::kLive)) return true;
  wanted_.insert(member);
  Tell();
  return false;
}

void Members::Leave(const core::Stop& stop, Time until) {
  for (core::ReplicaState& r : seen_) {
    if (r.incarnation != stop.incarnation) continue;
    core::Stop now = stop;
    now.finish = false;
    leaving_.try_emplace({r.id, r.attempt}, Leaving{now, until});
    r.leaving = true;
  }
  Tell();
}

std::vector<core::Stop> Members::TakeOverdue(Time now) {
  std::vector<core::Stop> out;
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    if (now < it->second.until) {
      ++it;
      continue;
    }
    out.push_back(it->second.stop);
    it = leaving_.erase(it);
  }
  return out;
}

std::optional<Time> Members::next() const {
  std::optional<Time> next;
  for (const auto& [member, leaving] : leaving_) {
    if (!next || leaving.until < *next) next = leaving.until;
  }
  return next;
}

void Members::AddProgress(api::Progress& progress) const {
  const ledger::DataReport& data = master_.data();
  if (!data.registered || data.records_total <= 0) return;
  const auto total = static_cast<double>(data.records_total);
  const auto left = static_cast<double>(data.records_left);
  progress.percent = 100 * (total - left) / total;
  double rate = 0;
  for (const auto& [id, share] : Shares()) rate += share.records_per_second;
  progress.remaining.reset();
  if (rate > 0 && left > 0) {
    progress.remaining = std::chrono::seconds(static_cast<int64_t>(std::ceil(left / rate)));
  }
}

std::map<ReplicaId, api::Share> Members::Shares() const {
  std::map<ReplicaId, api::Share> out;
  for (const core::ReplicaState& r : seen_) {
    if (core::HasEnded(r)) continue;
    const std::string name = core::MemberName(r.id, r.attempt);
    const auto report =
        std::ranges::find(master_.data().members, name, &ledger::MemberReport::name);
    if (report != master_.data().members.end())
      out[r.id] = {.doing = report->doing,
                   .done = report->done,
                   .records_per_second = std::round(report->rate * 10) / 10};
  }
  return out;
}

}  // namespace backend
