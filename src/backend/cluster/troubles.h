// What keeps the pods of a job from being made, from starting, or from going: told in events of
// the job, once for each pod and reason.
//
// One object a job. One thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "backend/cluster/chronicle.h"
#include "backend/cluster/pod.h"

namespace backend::cluster {

class Troubles {
 public:
  // Tells what is new. Returns when there may be more to tell although nothing has changed.
  std::optional<base::Time> Tell(const api::Job& job, const std::vector<Pod>& pods, base::Time now,
                                 Chronicle& chronicle);

  // The name of a pod that is to be made is this one's, which stays until somebody acts.
  void TellTaken(const api::Job& job, const Pod& pod, Chronicle& chronicle);

 private:
  void TellOnce(const api::Job& job, const Pod& pod, const core::Event& event,
                Chronicle& chronicle);

  std::set<std::string> told_;  // UIDs of pods, with the reason
};

}  // namespace backend::cluster
