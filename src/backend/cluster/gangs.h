// Resolves deadlocks between jobs that wait for places on nodes, where no gang scheduler does.
//
// A job that is not elastic starts to train only when all of its replicas run. With parameter
// servers it then goes on without a worker, but not without a parameter server or its coordinator.
// The scheduler of Kubernetes places pods one by one, so two jobs may each hold half of the places
// that they need, forever. Then the younger job backs off: its pods are deleted, and created again
// later. The oldest job that holds anything never backs off, so at least one job makes progress.
//
// Only jobs that compete are compared: the older one lacks a resource that the younger one requests,
// and their node selectors do not exclude each other.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "backend/cluster/pod.h"
#include "base/time.h"

namespace backend::cluster {

// A job that needs replicas that have no node.
struct Gang {
  Key job;
  int64_t priority = 0;  // of its pods
  base::Time created;
  size_t placed = 0, missing = 0;
  std::set<std::string> lacks;  // resources, by the scheduler's words: "cpu", "pods"
  std::set<std::string> requests;
  std::map<std::string, std::string> node_selector;
  bool operator==(const Gang&) const = default;
};

// Returns the job as a gang if it waits for replicas that have no place.
std::optional<Gang> GangOf(const Key& key, const api::Job& job, const std::vector<Pod>& pods);

// Returns those of these gangs that back off, oldest first.
std::vector<Key> GangsToBackOff(std::vector<Gang> gangs);

// Decides when gangs back off and when they return. One thread.
class GangAdmission {
 public:
  // Records a turn's view of the job. No gang: it misses no places. `away`: it has backed off.
  void Observe(const Key& job, std::optional<Gang> gang, bool away, base::Time now);
  void Forget(const Key& job);

  // Returns the jobs that are to back off, or to return, now.
  std::vector<Key> Advance(base::Time now);
  // When Advance has something to do.
  std::optional<base::Time> next() const { return due_; }
  // When the job is to have its pods: later if it is to back off, now if it is to return. Answered
  // once.
  std::optional<base::Time> TakeStart(const Key& job);

 private:
  struct Waiting {
    Gang gang;
    base::Time since;  // it has got as many places as it has
  };
  void Due(base::Time when);

  std::map<Key, Waiting> waiting_;
  std::map<Key, base::Time> away_;    // by the time they were created
  std::map<Key, base::Time> starts_;  // to be taken
  std::map<Key, int> times_;          // that it has backed off, in a row
  std::optional<base::Time> due_;
};

}  // namespace backend::cluster
