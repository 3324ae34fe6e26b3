// The objects that a TFJob becomes on a cluster: pods and services, named, labelled and owned as
// training-operator v1.9 does. Those of a job in ElasticDL's dialect are named as ElasticDL names
// them, and carry its labels beside ours.
//
// Pure: from values to JSON. The pod template passes through as written, but for what a replica
// needs to be one: docs/differences.md lists what differs from v1.9 and why.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/tfjob.h"
#include "base/json.h"

namespace backend::cluster {

inline constexpr std::string_view kOperatorLabel = "training.kubeflow.org/operator-name";
inline constexpr std::string_view kOperatorName = "tfjob-controller";
inline constexpr std::string_view kJobLabel = "training.kubeflow.org/job-name";
inline constexpr std::string_view kTypeLabel = "training.kubeflow.org/replica-type";
inline constexpr std::string_view kIndexLabel = "training.kubeflow.org/replica-index";
inline constexpr std::string_view kRoleLabel = "training.kubeflow.org/job-role";
// ElasticDL's own.
inline constexpr std::string_view kAppLabel = "app";
inline constexpr std::string_view kElasticDl = "elasticdl";
inline constexpr std::string_view kEdlJobLabel = "elasticdl-job-name";
inline constexpr std::string_view kEdlTypeLabel = "elasticdl-replica-type";
inline constexpr std::string_view kEdlIndexLabel = "elasticdl-replica-index";
inline constexpr std::string_view kAttemptLabel = "trainyard.dev/attempt";
// On a pod until its ending is in the status of its job, so that no ending is missed.
inline constexpr std::string_view kFinalizer = "trainyard.dev/observed";

// Whoever writes to, or reads from, what a job makes: its replicas and those who look after it.
inline constexpr int64_t kOutputUser = 1000;

// What the operator decides for all jobs alike.
struct Settings {
  std::string cluster_domain;  // "cluster.local", or empty: addresses end in .svc
  std::string gang_scheduler;  // empty: none; "volcano"; any other: a scheduler with PodGroups
  std::string master_image;    // of the masters that elastic jobs are given
  // We are the master that an operator has given the job to: until it has ended.
  bool until_end = false;
  // The kind of the objects that jobs are kept in, and that own their pods: TFJob or ConfigMap.
  // Pods with an owner of another kind belong to another controller.
  std::string owner_kind = std::string(api::kKind);
};

// Of the pod and of the service in front of it.
std::string ReplicaName(const api::Job& job, api::ReplicaId id);

// What ElasticDL labels a part of a job with; `type` is a role's lower name, or edl-master.
base::JsonObject ElasticDlLabels(const std::string& job, std::string_view type, int32_t index);

// Whether its pods carry our finalizer. Not where a master alone manages the job (ElasticDL's jobs,
// and jobs in ConfigMaps): the master goes when the job or its namespace is deleted, and nobody
// would be left to take the finalizer off.
bool HoldsPods(const api::Job& job, const Settings& settings);

// Selects what is the job's: its pods, its services.
std::string SelectorOf(const api::Job& job);
// Selects the pods of one role, as the scale subresource tells others.
std::string SelectorOf(const api::Job& job, api::Role role);

base::Json MakePod(const api::Job& job, api::ReplicaId id, int32_t attempt,
                   const Settings& settings);
base::Json MakeService(const api::Job& job, api::ReplicaId id);
base::JsonObject OwnerReference(const api::Job& job);
// What makes a pod one of this job, as a patch for one that somebody took it from.
base::Json MakeClaim(const api::Job& job, api::ReplicaId id, const std::string& uid,
                     const Settings& settings);

}  // namespace backend::cluster
