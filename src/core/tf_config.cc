#include "core/tf_config.h"

#include "base/json.h"
#include "core/dialect.h"
#include "core/elastic.h"

namespace core {
namespace {

using api::ReplicaId;
using api::ReplicasOf;
using api::Role;
using base::JsonArray;
using base::JsonObject;

JsonArray Addresses(int32_t count, Role role, const AddressOf& address) {
  JsonArray out;
  for (int32_t i = 0; i < count; ++i) out.emplace_back(address({role, i}));
  return out;
}

JsonObject Task(ReplicaId id) { return {{"type", api::LowerName(id.role)}, {"index", id.index}}; }

// enableDynamicWorker: a worker knows itself and the parameter servers, so workers may come and go.
// As training-operator v1.9 for workers and PS; a chief, master or evaluator, which upstream leaves
// with an empty cluster, gets all parameter servers and itself.
JsonObject SparseCluster(const api::Job& job, ReplicaId id, const AddressOf& address) {
  JsonObject worker;
  JsonArray ps = Addresses(ReplicasOf(job.spec, Role::kPs), Role::kPs, address);
  if (id.role == Role::kPs) ps = {base::Json(address(id))};
  if (id.role == Role::kWorker) worker[std::to_string(id.index)] = address(id);
  JsonObject cluster;
  cluster["worker"] = std::move(worker);
  cluster["ps"] = ps.empty() ? base::Json(nullptr) : base::Json(std::move(ps));
  if (id.role != Role::kPs && id.role != Role::kWorker) {
    cluster[api::LowerName(id.role)] = JsonArray{base::Json(address(id))};
  }
  return cluster;
}

}  // namespace

std::optional<std::string> TfConfig(const api::Job& job, ReplicaId id, const AddressOf& address) {
  const Dialect dialect = job.extensions.dialect;
  if (!job.extensions.tf_config) return std::nullopt;
  int32_t total = 0;
  for (Role role : api::kRoles) total += ReplicasOf(job.spec, role);
  // As in training-operator v1.9: a single replica gets no TF_CONFIG. Versions before v1 set it.
  if (total == 1 && dialect == Dialect::kTfJob && !job.spec.tf_config_for_single_replica) {
    return std::nullopt;
  }

  JsonObject config;
  if (job.spec.enable_dynamic_worker) {
    config["cluster"] = SparseCluster(job, id, address);
    config["task"] = Task(id);
    return base::CompactJson(config);
  }
  const bool evaluator = dialect == Dialect::kTfJob && job.extensions.evaluator_in_cluster;
  JsonObject cluster;
  for (Role role : api::kRoles) {
    if (role == Role::kEvaluator && !evaluator) continue;
    int32_t count = ReplicasOf(job.spec, role);
    if (count == 0) continue;
    // A parameter server fetches gradients from workers that it knows, and refuses others: it is
    // told of those that may come. A coordinator waits for all that it knows: it is not.
    if (role == Role::kWorker && id.role == Role::kPs) count = MostWorkers(job);
    cluster[api::LowerName(role)] = Addresses(count, role, address);
  }
  config["cluster"] = std::move(cluster);
  config["task"] = Task(id);
  if (dialect == Dialect::kTfJob) config["environment"] = "cloud";
  return base::CompactJson(config);
}

}  // namespace core
