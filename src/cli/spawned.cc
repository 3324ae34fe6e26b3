#include "cli/spawned.h"

#include <algorithm>
#include <map>
#include <set>

#include "backend/cluster/objects.h"
#include "base/strings.h"
#include "cli/object.h"
#include "cli/tf_spawner.h"
#include "core/reconcile.h"
#include "kube/api.h"

namespace cli {
namespace {

using backend::cluster::Pod;
using base::Json;
using base::JsonObject;

// The name of the container that trains: as TF-Spawner's templates have it, else the first.
std::string TrainerOf(const Json& pod) {
  const base::JsonArray& containers = ListAt(At(pod, "spec"), "containers");
  for (const Json& one : containers) {
    if (base::StringOr(one, "name") == api::kContainerName) return std::string(api::kContainerName);
  }
  return containers.empty() ? "" : base::StringOr(containers.front(), "name");
}

void Rename(Json& object, std::string_view list, const std::string& from) {
  if (!object.is_object()) return;
  Json* found = object.get_object().if_contains(list);
  if (!found || !found->is_array()) return;
  for (Json& one : found->get_array()) {
    if (base::StringOr(one, "name") == from) one.get_object()["name"] = api::kContainerName;
  }
}

// The pod as the operator would have made it.
std::optional<Pod> ReadSpawned(Json pod) {
  const std::string tag = TagOfPod(pod), trainer = TrainerOf(pod);
  const std::string app = base::StringOr(At(At(pod, "metadata"), "labels"), "app");
  if (tag.empty() || trainer.empty() || !app.starts_with("worker")) return std::nullopt;
  JsonObject& labels = base::ObjectAt(base::ObjectAt(pod.get_object(), "metadata"), "labels");
  labels[backend::cluster::kOperatorLabel] = backend::cluster::kOperatorName;
  labels[backend::cluster::kJobLabel] = tag;
  labels[backend::cluster::kTypeLabel] = "worker";
  labels[backend::cluster::kIndexLabel] = app.substr(6);
  Rename(pod.get_object()["spec"], "containers", trainer);
  Rename(pod.get_object()["status"], "containerStatuses", trainer);
  auto out = backend::cluster::ReadPod(pod);
  if (out) out->container = trainer;
  return out;
}

// CLAIM or CLAIM/PATH of the first claim that the trainer writes to; empty: none.
std::string ClaimOf(const Json& pod) {
  for (const Json& volume : ListAt(At(pod, "spec"), "volumes")) {
    const std::string claim =
        base::StringOr(At(volume, "persistentVolumeClaim"), "claimName");
    if (claim.empty()) continue;
    for (const Json& container : ListAt(At(pod, "spec"), "containers")) {
      for (const Json& mount : ListAt(container, "volumeMounts")) {
        if (base::StringOr(mount, "name") != base::StringOr(volume, "name")) continue;
        const std::string path = base::StringOr(mount, "subPath");
        return claim + (path.empty() ? "" : "/" + path);
      }
    }
    return claim;
  }
  return "";
}

}  // namespace

std::string TagOfPod(const Json& pod) {
  return base::StringOr(At(At(pod, "metadata"), "labels"), "training_attempt");
}

std::vector<Pod> SpawnedPods(const std::vector<Json>& pods) {
  std::vector<Pod> out;
  for (const Json& pod : pods)
    if (auto read = ReadSpawned(pod)) out.push_back(*std::move(read));
  return out;
}

api::Job SpawnedJob(const std::vector<Json>& pods, base::Time now) {
  api::Job job;
  core::Observed observed;
  int32_t workers = 0;
  for (const Pod& pod : SpawnedPods(pods)) {
    job.metadata.name = pod.job.name;
    job.metadata.name_space = pod.key.name_space;
    workers = std::max(workers, pod.replica.id.index + 1);
    observed.replicas.push_back(pod.replica);
  }
  job.extensions.dialect = api::Dialect::kTfSpawner;
  // Nobody restarts them, and the work of each counts.
  job.spec.success_policy = api::SuccessPolicy::kAllWorkers;
  job.spec.replicas[api::Role::kWorker] = {.replicas = workers};
  if (!pods.empty()) {
    job.spec.replicas[api::Role::kWorker].pod_template =
        JsonObject{{"spec", At(pods.front(), "spec")}};
    job.extensions.output = ClaimOf(pods.front());
  }
  // The same rules as for every job. A status may take some passes to settle.
  for (int pass = 0; pass < 4; ++pass)
    job.status = core::Reconcile(job, observed, {.end_leftovers = false}, now).status;
  std::string created;
  for (const Json& pod : pods) {
    const std::string time = Metadata(pod, "creationTimestamp");
    if (created.empty() || time < created) created = time;
  }
  if (const auto time = base::ParseTime(created)) job.status.start_time = time;
  return job;
}

std::vector<Spawned> FindSpawned(Cluster& cluster, const std::string& name_space) {
  std::map<std::pair<std::string, std::string>, Spawned> found;
  auto pods = cluster.client().List(kube::Path("v1", "pods", name_space), "training_attempt");
  for (Json& pod : pods ? *pods : base::JsonArray()) {
    const std::string space = Metadata(pod, "namespace"), tag = TagOfPod(pod);
    Spawned& one = found[{space, tag}];
    one.name_space = space;
    one.tag = tag;
    one.created = std::max(one.created, Metadata(pod, "creationTimestamp"));
    one.pods.push_back(std::move(pod));
  }
  std::vector<Spawned> out;
  for (auto& [key, one] : found) {
    if (!SpawnedPods(one.pods).empty()) out.push_back(std::move(one));
  }
  return out;
}

}  // namespace cli
