// The operator: every TFJob of a cluster, or of one namespace, kept as its author asked.
//
// Puts together what stands in files of its own: watches feed collections, changes wake turns,
// turns send requests through the pacer, events are told. All of it is one thread and one step
// machine over a kube::Transport: Advance() does what is due, answers come in between. In the
// simulator the same object runs against a model of an API server.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/cluster/collection.h"
#include "backend/cluster/objects.h"
#include "backend/cluster/pacer.h"
#include "backend/cluster/pod.h"
#include "backend/cluster/stored.h"
#include "backend/cluster/turns.h"
#include "kube/events.h"
#include "kube/lease.h"
#include "kube/transport.h"
#include "kube/watch.h"

namespace backend::cluster {

class Operator {
 public:
  struct Options {
    Settings settings;
    std::string name_space;      // of the jobs; empty: all
    std::string job;             // the only one that is kept; empty: all
    DataMaster* data = nullptr;  // of that one, if it is elastic
    // Where the lease lies, and who we are in it. Empty identity: no election, we lead.
    std::string lease_namespace;
    std::string lease_name;
    std::string identity;
  };

  // What happens, for those who count it. All from within Advance or an answer.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void Published(const api::JobStatus& before, const api::Job& after) = 0;
    virtual void Deleted(const api::Job& job) = 0;  // at the end of its time to live
    virtual void TurnOver(bool failed, base::Duration took) = 0;
  };

  Operator(kube::Transport& transport, Options options, Observer& observer);
  ~Operator();

  void Advance(base::Time now);
  // Of an operator of one job: its data has changed, or its master has something to tell.
  void Hear(const std::vector<core::Event>& events);
  // When Advance has something to do that no answer announces.
  std::optional<base::Time> next() const;

  // Every collection was listed once.
  bool synced() const;
  bool leads() const;
  // What keeps us from knowing the cluster; empty: nothing.
  std::string trouble() const;
  // The server's data is older than the data this operator has seen.
  bool behind() const;
  // The data of the cluster was restored from a backup: what this operator knows never happened.
  // Only a new one, which lists everything again, can go on.
  bool rolled_back() const;
  size_t jobs() const;
  size_t pods() const;
  size_t waiting() const;  // turns and requests
  // Of an operator of one job: it has ended, nothing of it runs or is held, and nothing is left to
  // say of it.
  bool settled() const;

  // Gives the lease up, so that another need not wait for its end. Advance goes on until
  // resigned().
  void Resign();
  bool resigned() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace backend::cluster
