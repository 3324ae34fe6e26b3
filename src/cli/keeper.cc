#include "cli/keeper.h"

#include <fmt/core.h>

#include "api/tfjob.h"
#include "base/strings.h"
#include "io/clock.h"
#include "kube/api.h"
#include "kube/discovery.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonObject;
using base::Result;
using namespace std::chrono_literals;

// Why TFJobs are no choice here; empty: they are.
Result<std::string> WhyNoTfJobs(Cluster& cluster, const std::string& name_space) {
  auto kind =
      kube::FindKind(cluster.client(), std::string(api::kApiVersion), std::string(api::kKind));
  if (!kind && kind.error().kind() == ErrorKind::kInvalid)
    return "this cluster does not know TFJobs";
  TRY(std::move(kind));
  if (!TRY(cluster.May("create", std::string(api::kGroup), "tfjobs", name_space)))
    return fmt::format("you may not create TFJobs in namespace {}", name_space);
  return "";
}

// A master acts with rights that we must be able to give it.
Result<> CheckMayHaveMaster(Cluster& cluster, const std::string& name_space, Keeper& keeper) {
  std::vector<std::string> missing;
  const auto need = [&](const std::string& verb, const std::string& group,
                        const std::string& resource) -> Result<> {
    if (!TRY(cluster.May(verb, group, resource, name_space)))
      missing.push_back(fmt::format("{} {}", verb, resource));
    return {};
  };
  TRY(need("create", "", "configmaps"));
  TRY(need("create", "batch", "jobs"));
  if (keeper.service_account.empty()) {
    TRY(need("create", "", "serviceaccounts"));
    for (const char* resource : {"roles", "rolebindings"})
      TRY(need("create", "rbac.authorization.k8s.io", resource));
    for (const auto& right : backend::cluster::MasterRights(false)) {
      for (const std::string& verb : right.verbs) TRY(need(verb, right.group, right.resource));
    }
    keeper.with_events = TRY(cluster.May("create", "", "events", name_space)) &&
                         TRY(cluster.May("patch", "", "events", name_space));
  }
  if (missing.empty()) return {};
  return std::unexpected(
      Error(ErrorKind::kForbidden,
            fmt::format(
                "a master cannot be given what it needs, since you may not {} in namespace {}: ask "
                "for the role admin there, or name a service account that may (--service-account)",
                base::Join(missing, ", "), name_space)));
}

}  // namespace

backend::cluster::MasterWish Keeper::MasterOf(const api::Job& job) const {
  backend::cluster::MasterWish out = backend::cluster::MasterFor(job);
  out.image = image;
  out.service_account = service_account;
  out.with_events = with_events;
  return out;
}

Result<Keeper> ChooseKeeper(Cluster& cluster, const Args& args, const std::string& name_space,
                            bool elastic) {
  const std::string wish = TRY(args.OneOf("keeper", "", {"operator", "master"}));
  Keeper out{.image = args.Get("master-image", backend::cluster::kMasterImage),
             .service_account = args.Get("service-account")};
  if (wish == "operator" || (wish.empty() && !elastic)) {
    const std::string why = TRY(WhyNoTfJobs(cluster, name_space));
    if (why.empty()) return out;
    if (wish == "operator")
      return base::Invalid(
          fmt::format("--keeper operator: {}: trainyard install, or --keeper master", why));
    out.why = why + ": the job gets a master of its own, a pod beside it";
  }
  out.store = Store::kConfigMaps;
  TRY(CheckMayHaveMaster(cluster, name_space, out));
  return out;
}

Result<> StartMasterAgain(Cluster& cluster, const std::string& name_space, const std::string& job) {
  const std::string path = kube::Path("batch/v1", "jobs", name_space, job + "-master");
  Json master = TRY(cluster.client().Get(path));
  // A Job that has ended cannot be started again, and whether this one is about to nobody can tell:
  // one like it takes its place. Two masters for a moment do no harm.
  JsonObject& object = master.get_object();
  auto gone = cluster.client().Delete(path);
  if (!gone && gone.error().kind() != ErrorKind::kNotFound) return gone;
  object.erase("status");
  JsonObject& spec = object["spec"].get_object();
  spec.erase("selector");
  spec["template"].get_object()["metadata"] =
      JsonObject{{"labels", JsonObject{{"app.kubernetes.io/name", "trainyard-master"}}}};
  JsonObject& metadata = object["metadata"].get_object();
  JsonObject fresh;
  for (const char* key : {"name", "namespace", "ownerReferences"}) fresh[key] = metadata[key];
  fresh["labels"] = JsonObject{{"app.kubernetes.io/managed-by", "trainyard"}};
  metadata = std::move(fresh);
  const base::Time patience = io::Now() + 30s;
  while (true) {
    auto made = cluster.client().Create(kube::Path("batch/v1", "jobs", name_space), master);
    if (made) return {};
    if (made.error().kind() != ErrorKind::kTaken || io::Now() > patience)
      return std::unexpected(made.error());
    cluster.server().Poll(100ms);  // the old one is on its way out
  }
}

}  // namespace cli
