// The replicas of an elastic job between its host, which starts and ends them, and the master of
// its data, which hands out shards to them.
//
// What the master must know comes before what rests on it: a replica is started once the master
// has answered a list with it, and an exit with status 0 is shown as not heard of until the master
// has answered one with that. A worker that is to finish first is `leaving` there, and asked to end
// when its time is over. Nothing of this outlives its host: it is derived again from the replicas.
//
// Threads: one. The master outlives this.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "core/observed.h"
#include "core/reconcile.h"
#include "ledger/control.h"

namespace backend {

// Who hands out the data of one job, as the job's host has it.
class DataMaster {
 public:
  virtual ~DataMaster() = default;
  // Who is there now, always all of it.
  virtual void Tell(std::vector<ledger::HostMember> members) = 0;
  // Whether it has answered, and so acted on, a list with this member in this state.
  virtual bool Knows(const std::string& member, ledger::MemberState state) const = 0;
  // As it last said.
  virtual const ledger::DataReport& data() const = 0;
  // It cannot be brought to serve the data; the words say why.
  virtual const std::string& broken() const = 0;
};

class Members {
 public:
  explicit Members(DataMaster& master) : master_(master) {}

  // The replicas as they are now: the master is told, those that leave are marked, and what it
  // says of the data is put beside them.
  void See(const api::Job& job, core::Observed& observed);

  // False: not yet. It is asked for again when the master has answered.
  bool MayStart(const core::Start& start);
  // Instead of a stop that says `finish`: it may finish until then.
  void Leave(const core::Stop& stop, base::Time until);
  // Those whose time is over, as plain stops.
  std::vector<core::Stop> TakeOverdue(base::Time now);
  // When the next one's is.
  std::optional<base::Time> next() const;

  // How far the data is, and when it will be through at the present pace.
  void AddProgress(api::Progress& progress) const;
  // What the master says of each replica that lives.
  std::map<api::ReplicaId, api::Share> Shares() const;

 private:
  struct Leaving {
    core::Stop stop;
    base::Time until;
  };

  void Tell();
  core::DataView View() const;

  DataMaster& master_;
  std::vector<core::ReplicaState> seen_;
  std::set<core::Member> wanted_;  // to be started once the master knows them
  std::map<core::Member, Leaving> leaving_;
};

}  // namespace backend
