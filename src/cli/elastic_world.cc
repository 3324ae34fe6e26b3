#include "cli/elastic_world.h"

#include <algorithm>

#include "cli/ledger_audit.h"
#include "io/clock.h"
#include "io/process.h"

namespace cli {

using api::ReplicaId;
using backend::local::LocalBackend;
using base::Result;
using base::Time;

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
  core::Observed out = processes_.Observe(job);
  members_.See(job, out);
  seen_ = out.replicas;
  return out;
}

Result<> ElasticWorld::Publish(const api::Job& job, const api::JobStatus& status,
                               const std::vector<core::Event>& events) {
  return processes_.Publish(job, status, events);
}

Result<> ElasticWorld::Perform(const api::Job& job, const core::Action& action) {
  if (const auto* start = std::get_if<core::Start>(&action); start && !members_.MayStart(*start))
    return {};
  if (const auto* stop = std::get_if<core::Stop>(&action); stop && stop->finish && PutOff(*stop))
    return {};
  return processes_.Perform(job, action);
}

bool ElasticWorld::PutOff(const core::Stop& stop) {
  const auto replica = std::ranges::find(seen_, stop.incarnation, &core::ReplicaState::incarnation);
  if (replica == seen_.end()) return false;
  members_.Leave(stop, io::Now() + processes_.GraceOf(replica->id, replica->attempt));
  return true;
}

bool ElasticWorld::Collect(Time now) {
  const bool news = master_.Collect(now);
  return Tend(now) || news;
}

bool ElasticWorld::Tend(Time now) {
  const bool news = master_.Tend(now);
  processes_.Spare(master_.pid());
  for (const core::Stop& stop : members_.TakeOverdue(now))
    base::IgnoreError(processes_.Perform({}, stop), "a stop cannot fail here");
  return news;
}

std::optional<Time> ElasticWorld::look_again() const {
  const std::optional<Time> master = master_.look_again(), members = members_.next();
  return master && members ? std::min(*master, *members) : master ? master : members;
}

}  // namespace cli
