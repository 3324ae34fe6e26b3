// Older spellings of a TFJob, rewritten into v1 before it is decoded.
//
// From 2017 to 2020 the object changed its group, version, shape and field names, and nobody ever
// converted for the author. What every old field means today is written down here, once, as a
// rewriting of the tree; the decoder knows v1 only. Values keep their positions, and errors found
// later are told by the paths that the author wrote.
//
//   v1alpha1 (kubeflow.org, tensorflow.org; mlkube.io/v1beta1): kind TfJob or TFJob, a list
//     `replicaSpecs` with `tfReplicaType` (MASTER unless said), `tfPort`, the restart policy in the
//     pod template; `tfImage`, `terminationPolicy`, `schedulerName`, `tensorboard`.
//   v1alpha2, v1beta1, v1beta2: the map `tfReplicaSpecs`, run policies at the top of the spec.
//
// In these, field names are taken in any letter case and with underscores (`ReplicaSpecs`,
// `tf_replica_type`), as their documents wrote them. In v1 the policies at the top of the spec and
// the list, with all that went with it, are taken, with a warning each; nothing else. An API server
// stores a job of any version as v1 (deploy/crd.yaml), so that is how the operator sees them all.
//
// A job of an older version is cleaned up as it was then, with Running unless it says otherwise
// (v1: None): its author counted on parameter servers being stopped. And a job of a single replica
// gets a TF_CONFIG, as all versions before v1 set it.
#pragma once

#include <string>
#include <vector>

#include "api/field_reader.h"

namespace api {

struct Spelling {
  std::string name;    // as Decoded::spelling
  bool is_job = true;  // false: no TFJob at all, there is no use in reading on
  // Where v1 would have the value, and where the author wrote it; the later entry stands.
  std::vector<std::pair<std::string, std::string>> moved;

  std::string Written(const std::string& v1_path) const;  // the author's path
};

Spelling RewriteAsV1(base::Node& root, FieldReader& reader);

}  // namespace api
