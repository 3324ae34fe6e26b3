#include "backend/cluster/master_objects.h"

#include <fmt/core.h>

#include "core/dialect.h"

namespace backend::cluster {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

JsonArray Texts(const std::vector<std::string>& words) {
  JsonArray out;
  for (const std::string& word : words) out.emplace_back(word);
  return out;
}

// The ledger of an elastic job, on the claim that keeps its output or in the pod.
void AddLedger(const MasterWish& wish, JsonObject& container, JsonObject& spec) {
  container["args"].get_array().emplace_back(fmt::format("--ledger={}", kLedgerMount));
  container["ports"] = JsonArray{JsonObject{{"containerPort", core::kMasterPort}}};
  JsonObject mount{{"name", "ledger"}, {"mountPath", kLedgerMount}};
  JsonObject volume{{"name", "ledger"}};
  if (wish.ledger_claim.empty()) {
    volume["emptyDir"] = JsonObject();
  } else {
    volume["persistentVolumeClaim"] = JsonObject{{"claimName", wish.ledger_claim}};
    mount["subPath"] = wish.ledger_path;
    // As the replicas, who write to the same claim.
    for (const char* key : {"runAsUser", "runAsGroup", "fsGroup"})
      spec["securityContext"].get_object()[key] = kOutputUser;
  }
  container["volumeMounts"] = JsonArray{std::move(mount)};
  spec["volumes"] = JsonArray{std::move(volume)};
}

// By which replicas find it, wherever its pod is.
Json MasterService(const JsonObject& metadata, const std::string& name) {
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", metadata},
      {"spec", JsonObject{{"selector", JsonObject{{"job-name", name}}},
                          {"ports", JsonArray{JsonObject{{"port", core::kMasterPort},
                                                         {"targetPort", core::kMasterPort}}}},
                          // One that was just started again is there at once.
                          {"publishNotReadyAddresses", true}}}};
}

JsonArray ArgsOf(const MasterWish& wish) {
  JsonArray out{Json("master"), Json(wish.job), Json("--namespace=" + wish.name_space)};
  if (wish.tfjob) out.emplace_back("--tfjob");
  if (!wish.settings.gang_scheduler.empty())
    out.emplace_back("--gang-scheduler-name=" + wish.settings.gang_scheduler);
  return out;
}

JsonObject PodSpec(const MasterWish& wish, const std::string& account) {
  JsonObject container{
      {"name", "master"},
      {"image", wish.image},
      {"imagePullPolicy", "IfNotPresent"},
      {"args", ArgsOf(wish)},
      {"resources", JsonObject{{"requests", JsonObject{{"cpu", "10m"}, {"memory", "32Mi"}}},
                               {"limits", JsonObject{{"memory", "256Mi"}}}}},
      {"securityContext",
       JsonObject{{"allowPrivilegeEscalation", false},
                  {"readOnlyRootFilesystem", true},
                  {"capabilities", JsonObject{{"drop", JsonArray{Json("ALL")}}}}}}};
  if (!wish.settings.cluster_domain.empty()) {
    container["env"] = JsonArray{
        JsonObject{{"name", "CUSTOM_CLUSTER_DOMAIN"}, {"value", wish.settings.cluster_domain}}};
  }
  JsonObject spec{
      {"restartPolicy", "OnFailure"},
      {"serviceAccountName", account},
      {"terminationGracePeriodSeconds", 10},
      {"securityContext", JsonObject{{"runAsNonRoot", true},
                                     {"seccompProfile", JsonObject{{"type", "RuntimeDefault"}}}}}};
  if (!wish.pull_secrets.empty()) spec["imagePullSecrets"] = wish.pull_secrets;
  if (wish.elastic) AddLedger(wish, container, spec);
  spec["containers"] = JsonArray{std::move(container)};
  return spec;
}

}  // namespace

std::vector<Right> MasterRights(bool with_events) {
  std::vector<Right> out = {
      {"", "configmaps", {"get", "list", "watch", "patch", "delete"}},
      {"", "pods", {"create", "get", "list", "watch", "patch", "delete"}},
      {"", "services", {"create", "get", "list", "watch", "delete"}},
  };
  if (with_events) out.push_back({"", "events", {"create", "patch"}});
  return out;
}

MasterWish MasterFor(const api::Job& job) {
  MasterWish out{.job = job.metadata.name,
                 .name_space = job.metadata.name_space,
                 .elastic = job.extensions.elastic.has_value()};
  for (const auto& [role, spec] : job.spec.replicas) {
    const Json& secrets = base::At(base::At(spec.pod_template, "spec"), "imagePullSecrets");
    if (secrets.is_array() && out.pull_secrets.empty()) out.pull_secrets = secrets.get_array();
  }
  // CLAIM or CLAIM/PATH; not the address of an object store.
  const std::string& output = job.extensions.output;
  if (out.elastic && !output.empty() && output.find("://") == std::string::npos) {
    const size_t slash = output.find('/');
    out.ledger_claim = output.substr(0, slash);
    out.ledger_path = slash == std::string::npos ? "ledger" : output.substr(slash + 1) + "/ledger";
  }
  return out;
}

std::vector<Json> MasterObjects(const MasterWish& wish, const JsonObject& owner) {
  const std::string name = wish.job + "-master";
  const JsonObject metadata{{"name", name},
                            {"namespace", wish.name_space},
                            {"labels", JsonObject{{"app.kubernetes.io/managed-by", "trainyard"}}},
                            {"ownerReferences", JsonArray{owner}}};
  constexpr const char* kRbac = "rbac.authorization.k8s.io/v1";
  std::vector<Json> out;
  if (wish.service_account.empty()) {
    out.push_back(
        JsonObject{{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", metadata}});
    if (wish.own_role) {
      JsonArray rules;
      for (const Right& right : MasterRights(wish.with_events)) {
        rules.push_back(JsonObject{{"apiGroups", Texts({right.group})},
                                   {"resources", Texts({right.resource})},
                                   {"verbs", Texts(right.verbs)}});
      }
      out.push_back(JsonObject{{"apiVersion", kRbac},
                               {"kind", "Role"},
                               {"metadata", metadata},
                               {"rules", std::move(rules)}});
    }
    out.push_back(JsonObject{
        {"apiVersion", kRbac},
        {"kind", "RoleBinding"},
        {"metadata", metadata},
        {"roleRef", JsonObject{{"apiGroup", "rbac.authorization.k8s.io"},
                               {"kind", wish.own_role ? "Role" : "ClusterRole"},
                               {"name", wish.own_role ? name : kMasterRole}}},
        {"subjects",
         JsonArray{JsonObject{
             {"kind", "ServiceAccount"}, {"name", name}, {"namespace", wish.name_space}}}}});
  }
  if (wish.elastic) out.push_back(MasterService(metadata, name));
  const std::string account = wish.service_account.empty() ? name : wish.service_account;
  out.push_back(JsonObject{
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata", metadata},
      // It is started again in its pod, and in another if the node is lost, as often as need be.
      {"spec", JsonObject{{"backoffLimit", 1'000'000},
                          {"template",
                           JsonObject{{"metadata",
                                       JsonObject{{"labels", JsonObject{{"app.kubernetes.io/name",
                                                                         "trainyard-master"}}}}},
                                      {"spec", PodSpec(wish, account)}}}}}});
  return out;
}

}  // namespace backend::cluster
