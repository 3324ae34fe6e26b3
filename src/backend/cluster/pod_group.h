// PodGroups: how a gang scheduler learns which pods belong together (as training-operator v1.9).
//
// Pure. One PodGroup a job, of its name; the pods say which group they are of.
#pragma once

#include <optional>
#include <string>

#include "api/tfjob.h"
#include "backend/cluster/objects.h"
#include "backend/cluster/stored.h"
#include "base/json.h"

namespace backend::cluster {

// "scheduling.volcano.sh/v1beta1", or the scheduler plugins' "scheduling.x-k8s.io/v1alpha1".
std::string PodGroupVersion(const Settings& settings);

// `there` is the group as it is, if it is. The queue that it is in stays: queues are an
// administrator's.
base::Json MakePodGroup(const api::Job& job, const Settings& settings,
                        const PodGroup* there = nullptr);

// The group already says what MakePodGroup would.
bool IsUpToDate(const PodGroup& group, const api::Job& job, const Settings& settings);

// Volcano admits a group before its pods may be made: not while its phase is empty or Pending.
bool PodsMayStart(const PodGroup& group, const Settings& settings);

// Some template names another scheduler, which knows nothing of the group.
bool NamesAnotherScheduler(const api::Job& job, const Settings& settings);

void JoinPodGroup(const api::Job& job, api::ReplicaId id, const Settings& settings,
                  base::JsonObject& metadata, base::JsonObject& spec);

}  // namespace backend::cluster
