// A cluster of so many CPUs that several jobs share, in virtual time.
//
// What is real: core::Reconcile decides about each job, through controller::Step, and a
// ledger::Ledger hands out its data. What is simulated: a scheduler that gives pods their places in
// the order of the jobs, as long as there are CPUs; containers that take some seconds to start;
// workers that take a shard, work on it for its time, report it, and take the next. The same seed
// gives the same run. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "backend/sim/agenda.h"
#include "backend/sim/random.h"
#include "ledger/audit.h"

namespace makespan {

struct Plan {
  api::Job job;
  std::map<api::Role, int32_t> cpus;  // of a pod of this role
  int32_t master_cpus = 1;            // of the pod that hands out the data
  bool gang = false;                  // all of its pods get their places at once, or none does
  int64_t shards = 0;
  base::Duration shard_takes{0};
};

struct Outcome {
  base::Duration waited{0};   // from its submission until the first worker had a shard
  base::Duration ended{0};    // since the beginning, with success
  int32_t cpus_at_first = 0;  // that it had when its first worker had a shard
  ledger::Audit audit;
};

class SharedCluster {
 public:
  SharedCluster(int32_t cpus, uint64_t seed);
  ~SharedCluster();
  SharedCluster(const SharedCluster&) = delete;

  void Submit(base::Duration at, Plan plan);
  // Until nothing is left to happen. A job that does not end with success is a failure of the
  // caller's test, which says why.
  std::vector<Outcome> Run();

 private:
  class Tenant;

  // Gives places to pods that wait for one.
  void Place();

  backend::sim::Agenda agenda_;
  backend::sim::Random random_;
  const base::Time begin_;
  const int32_t cpus_;
  int32_t used_ = 0;
  std::vector<std::unique_ptr<Tenant>> tenants_;  // in the order of their submission
};

}  // namespace makespan
