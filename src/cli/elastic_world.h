// This machine as the world of an elastic job: its processes, and the master of its data.
//
// What the master must know comes before what rests on it: a replica is started once the master
// has answered a list with it, and an exit with status 0 is shown as not heard of until the master
// has answered one with that. A worker that is to finish first is `leaving` there, and asked to
// end when its time is over.
//
// Threads: one. The owner polls Poll() beside the processes' own descriptors.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <poll.h>

#include "backend/backend.h"
#include "backend/local/local_backend.h"
#include "cli/place.h"
#include "cli/shard_master.h"
#include "ledger/log.h"

namespace cli {

// What the ledger of a job of this machine is bound to.
ledger::Job LedgerJob(const api::Job& job);

class ElasticWorld : public backend::Backend {
 public:
  // kNotFound: the master's program is not there.
  static base::Result<std::unique_ptr<ElasticWorld>> Open(backend::local::LocalBackend& processes,
                                                          const api::Job& job);

  core::Observed Observe(const api::Job& job) override;
  base::Result<> Publish(const api::Job& job, const api::JobStatus& status,
                         const std::vector<core::Event>& events) override;
  base::Result<> Perform(const api::Job& job, const core::Action& action) override;

  pollfd Poll() const { return master_.Poll(); }
  // The master has something to say. True: look again at once.
  bool Collect(base::Time now);
  // Does what is due. True as with Collect.
  bool Tend(base::Time now);
  std::optional<base::Time> look_again() const;

  // How far the data is, and when it will be through at the present pace.
  void AddProgress(api::Progress& progress) const;
  // Of each replica that lives.
  std::map<api::ReplicaId, Sharing> Shares() const;
  std::vector<core::Event> TakeEvents() { return master_.TakeEvents(); }

 private:
  ElasticWorld(backend::local::LocalBackend& processes, ShardMaster::Options options)
      : processes_(processes), master_(std::move(options)) {}

  void TellMembers(const core::Observed& observed);
  core::DataView View(const core::Observed& observed) const;
  void Leave(const core::Stop& stop, const core::ReplicaState& replica);

  backend::local::LocalBackend& processes_;
  ShardMaster master_;
  std::set<core::Member> wanted_;  // to be started once the master knows them
  struct Leaving {
    core::Stop stop;
    base::Time until;
  };
  std::map<core::Member, Leaving> leaving_;
  core::Observed seen_;  // as last observed
};

}  // namespace cli
