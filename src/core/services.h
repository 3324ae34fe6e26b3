// Which replicas have a name that others can find them by.
//
// Pure, like the rest of the core; only worlds where names are objects of their own (a cluster's
// services) ask.
#pragma once

#include "api/tfjob.h"
#include "core/observed.h"

namespace core {

enum class ServiceWish {
  kMake,    // to be there
  kKeep,    // may stay, is not made again
  kRemove,  // to go
};

// As training-operator v1.9 where that is right: a suspended job has none; a job that has ended
// keeps those of the replicas that cleanPodPolicy leaves, also when the pod went first.
ServiceWish WishFor(const api::Job& job, const api::JobStatus& status, const Observed& observed,
                    api::ReplicaId id);

}  // namespace core
