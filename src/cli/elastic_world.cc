#include "cli/elastic_world.h"

#include <algorithm>
#include <cmath>

#include "core/elastic.h"
#include "core/endings.h"
#include "io/clock.h"
#include "io/process.h"

namespace cli {

using api::ReplicaId;
using backend::local::LocalBackend;
using base::Result;
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

ledger::Job LedgerJob(const api::Job& job) {
  const api::Metadata& metadata = job.metadata;
  return {.uid = metadata.uid.empty() ? metadata.name_space : metadata.uid, .name = metadata.name};
}

Result<std::unique_ptr<ElasticWorld>> ElasticWorld::Open(LocalBackend& processes,
                                                         const api::Job& job) {
  const std::string ledger = processes.dir().File("ledger");
  TRY(io::MakeDirs(ledger));
  return std::unique_ptr<ElasticWorld>(
      new ElasticWorld(processes, {.program = TRY(io::HelperProgram("trainyard-master")),
                                   .job = LedgerJob(job),
                                   .ledger = ledger,
                                   .log = processes.dir().File("master.log"),
                                   .port = processes.run().master_port,
                                   .lock = processes.lock_fd()}));
}

core::Observed ElasticWorld::Observe(const api::Job& job) {
  seen_ = processes_.Observe(job);
  std::erase_if(wanted_, [&](const Member& member) {
    return !core::IsAwaited(job, job.status, {.id = member.first, .attempt = member.second});
  });
  for (core::ReplicaState& r : seen_.replicas) {
    const Member member{r.id, r.attempt};
    wanted_.erase(member);
    if (core::HasEnded(r)) leaving_.erase(member);
    r.leaving = leaving_.contains(member);
  }
  TellMembers(seen_);
  core::Observed out = seen_;
  out.data = View(seen_);
  AddProgress(out.progress);  // so that it agrees with the data
  return out;
}

void ElasticWorld::TellMembers(const core::Observed& observed) {
  std::vector<ledger::HostMember> members;
  const auto add = [&](ReplicaId id, int32_t attempt, MemberState state) {
    members.push_back({core::MemberName(id, attempt), core::WorkerNumber(id, attempt), state});
  };
  for (const core::ReplicaState& r : observed.replicas) {
    if (IsMember(r.id)) add(r.id, r.attempt, StateOf(r));
  }
  for (const auto& [id, attempt] : wanted_) add(id, attempt, MemberState::kLive);
  master_.Tell(std::move(members));
}

core::DataView ElasticWorld::View(const core::Observed& observed) const {
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
  for (const core::ReplicaState& r : observed.replicas) {
    const Member member{r.id, r.attempt};
    if (IsMember(r.id) && core::HasEnded(r) && !master_.Knows(NameOf(member), StateOf(r))) {
      out.unheard.insert(member);
    }
  }
  return out;
}

Result<> ElasticWorld::Publish(const api::Job& job, const api::JobStatus& status,
                               const std::vector<core::Event>& events) {
  return processes_.Publish(job, status, events);
}

Result<> ElasticWorld::Perform(const api::Job& job, const core::Action& action) {
  if (const auto* start = std::get_if<core::Start>(&action)) {
    const Member member{start->id, start->attempt};
    if (IsMember(start->id) && !master_.Knows(NameOf(member), MemberState::kLive)) {
      wanted_.insert(member);
      TellMembers(seen_);
      return {};  // asked for again when it has answered
    }
  }
  if (const auto* stop = std::get_if<core::Stop>(&action)) {
    for (const core::ReplicaState& r : seen_.replicas) {
      if (r.incarnation != stop->incarnation) continue;
      if (stop->finish) {
        Leave(*stop, r);
        return {};
      }
      leaving_.erase({r.id, r.attempt});
    }
  }
  return processes_.Perform(job, action);
}

void ElasticWorld::Leave(const core::Stop& stop, const core::ReplicaState& replica) {
  const Member member{replica.id, replica.attempt};
  if (leaving_.contains(member)) return;
  core::Stop now = stop;
  now.finish = false;
  leaving_[member] = {now, io::Now() + processes_.GraceOf(replica.id, replica.attempt)};
  for (core::ReplicaState& r : seen_.replicas) r.leaving |= Member{r.id, r.attempt} == member;
  TellMembers(seen_);
}

bool ElasticWorld::Collect(Time now) {
  const bool news = master_.Collect(now);
  return Tend(now) || news;
}

bool ElasticWorld::Tend(Time now) {
  const bool news = master_.Tend(now);
  processes_.Spare(master_.pid());
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    if (now < it->second.until) {
      ++it;
      continue;
    }
    base::IgnoreError(processes_.Perform({}, it->second.stop), "a stop cannot fail here");
    it = leaving_.erase(it);
  }
  return news;
}

std::optional<Time> ElasticWorld::look_again() const {
  std::optional<Time> next = master_.look_again();
  for (const auto& [member, leaving] : leaving_) {
    if (!next || leaving.until < *next) next = leaving.until;
  }
  return next;
}

void ElasticWorld::AddProgress(api::Progress& progress) const {
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

std::map<ReplicaId, Sharing> ElasticWorld::Shares() const {
  std::map<ReplicaId, Sharing> out;
  for (const core::ReplicaState& r : seen_.replicas) {
    if (core::HasEnded(r)) continue;
    const std::string name = core::MemberName(r.id, r.attempt);
    const auto report =
        std::ranges::find(master_.data().members, name, &ledger::MemberReport::name);
    if (report == master_.data().members.end()) continue;
    out[r.id] = {.doing = report->doing, .done = report->done, .records_per_second = report->rate};
  }
  return out;
}

}  // namespace cli
