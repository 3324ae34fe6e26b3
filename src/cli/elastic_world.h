// This machine as the world of an elastic job: its processes, and the master of its data.
//
// Threads: one. The owner polls Poll() beside the processes' own descriptors.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <poll.h>

#include "backend/backend.h"
#include "backend/local/local_backend.h"
#include "backend/members.h"
#include "cli/place.h"
#include "cli/shard_master.h"

namespace cli {

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

  void AddProgress(api::Progress& progress) const { members_.AddProgress(progress); }
  // Of each replica that lives.
  std::map<api::ReplicaId, api::Share> Shares() const { return members_.Shares(); }
  std::vector<core::Event> TakeEvents() { return master_.TakeEvents(); }

 private:
  ElasticWorld(backend::local::LocalBackend& processes, ShardMaster::Options options)
      : processes_(processes), master_(std::move(options)) {}

  // True: the stop is put off, for as long as its grace period.
  bool PutOff(const core::Stop& stop);

  backend::local::LocalBackend& processes_;
  ShardMaster master_;
  backend::Members members_{master_};
  std::vector<core::ReplicaState> seen_;  // as last observed
};

}  // namespace cli
