// A pod of ours as the API server last showed it, reduced to what decisions need.
//
// Pure, and total: any JSON is read without trust; what does not carry our labels is no pod of
// ours.
#pragma once

#include <optional>
#include <string>

#include "api/tfjob.h"
#include "backend/cluster/collection.h"
#include "base/json.h"
#include "core/observed.h"

namespace backend::cluster {

struct Pod {
  Key key;
  Key job;  // by its label
  std::string uid;
  kube::Version version = 0;
  std::string owner;  // UID of what controls it; empty: nothing does any more
  std::string owner_kind;
  // incarnation is the UID. An ending is there as soon as the container named tensorflow has one,
  // whatever its sidecars do.
  core::ReplicaState replica;
  bool held = false;  // carries our finalizer
  // Every container has ended, or nobody will ever say so: there is nothing to wait for any more.
  bool finished = false;
  bool closing = false;  // every container has ended, and its phase will say so in a moment
  int64_t grace = -1;    // seconds it was given to end in; -1: nobody asks it to
  base::Time gone_by;    // if somebody does
  std::string container{api::kContainerName};  // the one that trains, whose log is the replica's
  std::string node;      // empty: none has it
  int64_t priority = 0;  // higher is more important, to the scheduler
  // Why it does not start ("ImagePullBackOff", "Unschedulable"), or that its node is silent.
  std::string trouble;
  std::string trouble_message;
};

// Nothing when the labels do not say which replica of which job it is.
std::optional<Pod> ReadPod(const base::Json& object);

// Of a pod that is no replica: its name, and why it does not start.
Pod ReadTroubled(const base::Json& object);

// Of this job by its owner or else by its labels, but not by both: somebody edited it.
bool WasTakenFrom(const api::Job& job, const base::Json& object);

}  // namespace backend::cluster
