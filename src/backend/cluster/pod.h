// A pod of ours as the API server last showed it, reduced to what decisions need.
//
// Pure, and total: any JSON is read without trust; what does not carry our labels is no pod of
// ours.
#pragma once

#include <optional>
#include <string>

#include "backend/cluster/collection.h"
#include "base/json.h"
#include "core/observed.h"

namespace backend::cluster {

struct Pod {
  Key key;
  Key job;  // by its label
  std::string uid;
  kube::Version version = 0;
  std::string owner;  // UID of the TFJob that controls it; empty: of none any more
  // incarnation is the UID. An ending is there as soon as the container named tensorflow has one,
  // whatever its sidecars do.
  core::ReplicaState replica;
  bool held = false;      // carries our finalizer
  bool finished = false;  // every container has ended, so that nothing of it can run any more
  int64_t grace = -1;     // seconds it was given to end in; -1: nobody asks it to
  std::string trouble;    // why it does not start: "ImagePullBackOff", "Unschedulable"
  std::string trouble_message;
};

// Nothing when the labels do not say which replica of which job it is.
std::optional<Pod> ReadPod(const base::Json& object);

}  // namespace backend::cluster
