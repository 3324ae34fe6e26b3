#include "backend/cluster/objects.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "backend/cluster/pod_group.h"
#include "base/strings.h"
#include "core/dialect.h"
#include "core/elastic.h"
#include "core/tf_config.h"

namespace backend::cluster {
namespace {

using api::ReplicaId;
using api::Role;
using base::ArrayAt;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::ObjectAt;

bool IsElasticDl(const api::Job& job) { return job.extensions.dialect == api::Dialect::kElasticDl; }

JsonObject Labels(const api::Job& job, ReplicaId id) {
  JsonObject out;
  out[kOperatorLabel] = kOperatorName;
  out[kJobLabel] = job.metadata.name;
  out[kTypeLabel] = api::LowerName(id.role);
  out[kIndexLabel] = std::to_string(id.index);
  if (IsElasticDl(job)) {
    for (const auto& [key, value] :
         ElasticDlLabels(job.metadata.name, api::LowerName(id.role), id.index)) {
      out[key] = value;
    }
  }
  return out;
}

// Chiefs and masters; where there are none, worker 0.
bool IsMaster(const api::Job& job, ReplicaId id) {
  if (id.role == Role::kChief || id.role == Role::kMaster) return true;
  return id == ReplicaId{Role::kWorker, 0} && api::ReplicasOf(job.spec, Role::kChief) == 0 &&
         api::ReplicasOf(job.spec, Role::kMaster) == 0;
}

JsonObject Variable(std::string_view name, std::string_view value) {
  return {{"name", name}, {"value", value}};
}

std::string Address(const api::Job& job, ReplicaId id, const std::string& domain) {
  if (IsElasticDl(job))
    return fmt::format("{}:{}", ReplicaName(job, id), core::ElasticDlPort(id.role));
  return fmt::format("{}.{}.svc{}{}:{}", ReplicaName(job, id), job.metadata.name_space,
                     domain.empty() ? "" : ".", domain, job.spec.replicas.at(id.role).port);
}

std::string MasterAddress(const api::Job& job, const std::string& domain) {
  const std::string name = core::MasterName(job);
  if (IsElasticDl(job)) return fmt::format("{}:{}", name, core::kMasterPort);
  return fmt::format("{}.{}.svc{}{}:{}", name, job.metadata.name_space, domain.empty() ? "" : ".",
                     domain, core::kMasterPort);
}

void AddElastic(const api::Job& job, ReplicaId id, int32_t attempt, const Settings& settings,
                JsonArray& env) {
  if (!job.extensions.elastic) return;
  const std::string master = MasterAddress(job, settings.cluster_domain);
  for (const auto& [name, value] : core::ElasticEnvironment(job, id, attempt, master))
    env.push_back(Variable(name, value));
  env.push_back(JsonObject{
      {"name", "MY_POD_IP"},
      {"valueFrom", JsonObject{{"fieldRef", JsonObject{{"fieldPath", "status.podIP"}}}}}});
}

// Ours come before the author's, which win; TF_CONFIG comes last and wins over all, as in v1.9.
void AddEnvironment(const api::Job& job, ReplicaId id, int32_t attempt, const Settings& settings,
                    JsonObject& container) {
  const std::string workers = std::to_string(api::ReplicasOf(job.spec, Role::kWorker));
  JsonArray env = {
      Variable("WORKER_NUMBER", std::to_string(id.index)),
      Variable("TOT_WORKERS", workers),
      Variable("TRAINYARD_JOB", job.metadata.name),
      Variable("TRAINYARD_ROLE", api::LowerName(id.role)),
      Variable("TRAINYARD_INDEX", std::to_string(id.index)),
      Variable("TRAINYARD_ATTEMPT", std::to_string(attempt)),
      Variable("PYTHONUNBUFFERED", "1"),
      Variable("PYTHONFAULTHANDLER", "1"),
  };
  AddElastic(job, id, attempt, settings, env);
  JsonArray& authors = ArrayAt(container, "env");
  for (Json& entry : authors) env.push_back(std::move(entry));
  const auto address = [&](ReplicaId peer) { return Address(job, peer, settings.cluster_domain); };
  if (auto config = core::TfConfig(job, id, address)) {
    env.push_back(Variable("TF_CONFIG", *config));
  }
  authors = std::move(env);
}

}  // namespace

std::string ReplicaName(const api::Job& job, ReplicaId id) { return core::ReplicaName(job, id); }

JsonObject ElasticDlLabels(const std::string& job, std::string_view type, int32_t index) {
  return {{kAppLabel, kElasticDl},
          {kEdlJobLabel, job},
          {kEdlTypeLabel, type},
          {kEdlIndexLabel, std::to_string(index)}};
}

bool HoldsPods(const api::Job& job, const Settings& settings) {
  return !IsElasticDl(job) && settings.owner_kind == api::kKind;
}

std::string SelectorOf(const api::Job& job) {
  return fmt::format("{}={},{}={}", kJobLabel, job.metadata.name, kOperatorLabel, kOperatorName);
}

std::string SelectorOf(const api::Job& job, Role role) {
  return fmt::format("{},{}={}", SelectorOf(job), kTypeLabel, api::LowerName(role));
}

JsonObject OwnerReference(const api::Job& job) {
  return {{"apiVersion", api::kApiVersion}, {"kind", api::kKind}, {"name", job.metadata.name},
          {"uid", job.metadata.uid},        {"controller", true}, {"blockOwnerDeletion", true}};
}

Json MakeClaim(const api::Job& job, ReplicaId id, const std::string& uid,
               const Settings& settings) {
  JsonObject metadata = {{"uid", uid},
                         {"labels", Labels(job, id)},
                         {"ownerReferences", JsonArray{OwnerReference(job)}}};
  if (HoldsPods(job, settings)) metadata["finalizers"] = JsonArray{Json(kFinalizer)};
  return JsonObject{{"metadata", std::move(metadata)}};
}

Json MakePod(const api::Job& job, ReplicaId id, int32_t attempt, const Settings& settings) {
  const Json& pod_template = job.spec.replicas.at(id.role).pod_template;
  JsonObject pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  JsonObject metadata;
  metadata["name"] = ReplicaName(job, id);
  metadata["namespace"] = job.metadata.name_space;
  const Json* wanted = base::Find(pod_template, "metadata");
  const auto copy = [&](std::string_view key) {
    const Json* value = wanted ? base::Find(*wanted, key) : nullptr;
    if (value) metadata[key] = *value;
  };
  copy("labels");
  copy("annotations");
  copy("finalizers");
  JsonObject& labels = ObjectAt(metadata, "labels");
  for (auto& [key, value] : Labels(job, id)) labels[key] = value;
  if (IsMaster(job, id)) labels[kRoleLabel] = "master";
  labels[kAttemptLabel] = std::to_string(attempt);
  if (HoldsPods(job, settings)) ArrayAt(metadata, "finalizers").emplace_back(kFinalizer);
  metadata["ownerReferences"] = JsonArray{OwnerReference(job)};

  const Json* given = base::Find(pod_template, "spec");
  JsonObject spec = given && given->is_object() ? given->get_object() : JsonObject();
  // Restarts are ours to make: they are counted, paused and made together with those that need it.
  spec["restartPolicy"] = "Never";
  for (Json& container : ArrayAt(spec, "containers")) {
    if (base::StringOr(container, "name") != api::kContainerName) continue;
    AddEnvironment(job, id, attempt, settings, container.get_object());
    // The end of the log comes with the pod's status, so that the verdict can quote it.
    if (!base::Find(container, "terminationMessagePolicy")) {
      container.get_object()["terminationMessagePolicy"] = "FallbackToLogsOnError";
    }
    break;
  }
  if (const auto& high = job.extensions.high_priority; high && id.role == Role::kWorker) {
    spec["priorityClassName"] = std::ranges::find(*high, id.index) == high->end() ? "low" : "high";
  }
  if (!settings.gang_scheduler.empty()) JoinPodGroup(job, id, settings, metadata, spec);
  pod["metadata"] = std::move(metadata);
  pod["spec"] = std::move(spec);
  return pod;
}

namespace {

// As ElasticDL makes it: with an address of its own, and its labels as annotations too.
Json ElasticDlService(const api::Job& job, ReplicaId id) {
  const int32_t port = core::ElasticDlPort(id.role);
  const JsonObject theirs = ElasticDlLabels(job.metadata.name, api::LowerName(id.role), id.index);
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", JsonObject{{"name", ReplicaName(job, id)},
                              {"namespace", job.metadata.name_space},
                              {"labels", Labels(job, id)},
                              {"annotations", theirs},
                              {"ownerReferences", JsonArray{OwnerReference(job)}}}},
      {"spec", JsonObject{{"selector", theirs},
                          {"ports", JsonArray{JsonObject{{"port", port}, {"targetPort", port}}}},
                          {"publishNotReadyAddresses", true}}}};
}

}  // namespace

Json MakeService(const api::Job& job, ReplicaId id) {
  if (IsElasticDl(job)) return ElasticDlService(job, id);
  JsonArray ports;
  std::set<std::pair<int64_t, std::string>> seen;
  const Json* container = api::TensorFlowContainer(job.spec.replicas.at(id.role).pod_template);
  const Json* given = container ? base::Find(*container, "ports") : nullptr;
  if (given && given->is_array()) {
    for (const Json& port : given->get_array()) {
      const std::string name = base::StringOr(port, "name");
      const std::string protocol = base::StringOr(port, "protocol");
      const int64_t number = base::IntOr(port, "containerPort");
      if (!seen.insert({number, protocol.empty() ? "TCP" : protocol}).second) continue;
      JsonObject entry;
      if (!name.empty()) entry["name"] = name;
      entry["port"] = number;
      if (!protocol.empty()) entry["protocol"] = protocol;
      ports.push_back(std::move(entry));
    }
  }
  // A service of several ports must name each.
  if (ports.size() > 1) {
    for (Json& port : ports) {
      if (!base::Find(port, "name")) {
        const std::string protocol = base::Lower(base::StringOr(port, "protocol"));
        port.get_object()["name"] =
            fmt::format("port-{}{}", base::IntOr(port, "port"),
                        protocol.empty() || protocol == "tcp" ? "" : "-" + protocol);
      }
    }
  }
  JsonObject metadata;
  metadata["name"] = ReplicaName(job, id);
  metadata["namespace"] = job.metadata.name_space;
  metadata["labels"] = Labels(job, id);
  metadata["ownerReferences"] = JsonArray{OwnerReference(job)};
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Service"},
                    {"metadata", std::move(metadata)},
                    // A peer looks a name up before its owner is ready, and must find it.
                    {"spec", JsonObject{{"clusterIP", "None"},
                                        {"selector", Labels(job, id)},
                                        {"ports", std::move(ports)},
                                        {"publishNotReadyAddresses", true}}}};
}

}  // namespace backend::cluster
