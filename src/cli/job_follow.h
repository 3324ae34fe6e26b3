// One job on a cluster and its pods, followed as they change.
//
// A step machine over the doors to an API server, as kube::Watch: Advance() does what is due, and
// answers come from the owner's polling in between.
//
// The job and its pods come by two watches, and after an outage one may be half a minute behind the
// other. So a job that is seen to have ended is over only when its pods have been seen since:
// whoever leaves then, or reads no further log, has missed none of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "backend/cluster/collection.h"
#include "backend/cluster/pod.h"
#include "backend/cluster/stored.h"
#include "base/time.h"
#include "kube/transport.h"
#include "kube/watch.h"

namespace cli {

// A cluster that is away longer than this is told, and not waited for any more.
inline constexpr base::Duration kAwayTooLong = std::chrono::minutes(2);

class JobFollow {
 public:
  // Jobs are behind one door, pods behind another: they may be kept in different ways.
  JobFollow(kube::Transport& jobs, kube::Transport& pods, const std::string& name_space,
            const std::string& name);

  void Advance(base::Time now);
  std::optional<base::Time> next() const;

  // Everything was seen once, the pods of a job that has ended once more: what is missing does not
  // exist.
  bool synced() const { return job_watch_.synced() && pod_watch_.synced(); }
  // Nothing: it does not exist, or not any more.
  const backend::cluster::StoredJob* job() const;
  // Those of this very job, by name.
  std::vector<const backend::cluster::Pod*> pods() const;
  // Some pod has not ended.
  bool AnyPodLives() const;
  // It has ended or is suspended, all pods that it had are known, and none runs any more.
  bool over() const;
  // Its queue holds it back: it goes on by itself, also when it is over for the moment.
  bool IsQueued() const;
  // What keeps us from seeing it; empty: nothing.
  std::string trouble() const;
  // Something changed since the last call.
  bool TakeNews() { return std::exchange(news_, false); }

 private:
  bool IsDecided() const;
  bool PodsAreCurrent() const;

  const backend::cluster::Key key_;
  bool news_ = true;
  backend::cluster::Collection<backend::cluster::StoredJob> jobs_;
  backend::cluster::Collection<backend::cluster::Pod> pods_;
  kube::Watch job_watch_;
  kube::Watch pod_watch_;
  kube::Version listed_for_ = 0;  // the version of the job after which pods were listed again
};

}  // namespace cli
