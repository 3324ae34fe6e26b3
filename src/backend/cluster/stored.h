// Jobs, services and pod groups as the API server last showed them. Pods are in pod.h.
//
// Pure, and total: any JSON is read without trust.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/tfjob.h"
#include "backend/cluster/collection.h"
#include "base/json.h"

namespace backend::cluster {

struct StoredJob {
  Key key;
  Key job;  // the same
  std::string uid;
  kube::Version version = 0;
  std::shared_ptr<const api::Job> value;
  bool deleting = false;
  // Why it cannot be a job, one line; empty: it is one. `value` then has metadata and status only.
  std::string invalid;
  bool tells_selector = false;  // its status has the selector of its workers
};

std::optional<StoredJob> ReadJob(const base::Json& object);

// By its managedBy: a job may be another's, of Kueue on another cluster say.
bool IsOurs(const api::Job& job);

struct Service {
  Key key;
  Key job;
  std::string uid;
  kube::Version version = 0;
  std::string owner;  // UID of the TFJob that controls it; empty: of none
  api::ReplicaId id;
  bool deleting = false;
};

std::optional<Service> ReadService(const base::Json& object);

struct PodGroup {
  Key key;
  Key job;
  std::string uid;
  kube::Version version = 0;
  std::string owner;
  base::Json spec;
  std::string phase;  // as its scheduler says
  bool deleting = false;
};

std::optional<PodGroup> ReadPodGroup(const base::Json& object);

// The owner reference to what controls an object, or null.
const base::Json& ControllerOf(const base::Json& metadata);
// Its UID, or empty.
std::string OwnerOf(const base::Json& metadata);

// Of another job than that of this UID: one of the same name before it.
bool IsOfAnother(const auto& object, const std::string& uid) {
  return !object.owner.empty() && object.owner != uid;
}

}  // namespace backend::cluster
