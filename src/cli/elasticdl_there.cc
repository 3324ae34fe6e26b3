// `elasticdl train` on a cluster: makes the job, its master and the master's service; the master
// makes the rest.
#include <fmt/core.h>

#include "backend/cluster/master_objects.h"
#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/elasticdl_command.h"
#include "cli/elasticdl_master.h"
#include "cli/made.h"
#include "cli/refuse.h"
#include "core/dialect.h"
#include "io/terminal.h"
#include "kube/api.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::Result;

std::string CollectionOf(const Json& object) {
  const std::string kind = base::StringOr(object, "kind");
  return kind == "ConfigMap" ? "configmaps" : kind == "Service" ? "services" : "pods";
}

Result<> CheckNameIsFree(const Cluster& cluster, const api::Job& job) {
  const std::string pod = core::MasterName(job);
  const auto there = cluster.client().Get(kube::Path("v1", "pods", job.metadata.name_space, pod));
  if (!there && there.error().kind() == ErrorKind::kNotFound) return {};
  if (!there) return std::unexpected(there.error());
  return base::Invalid(
      fmt::format("--job_name: there is a job {} already: choose another name, or delete it: "
                  "kubectl delete pod "
                  "{} -n {}",
                  job.metadata.name, pod, job.metadata.name_space));
}

// Whom the master's pod is: as --cluster_spec or the pod says, else "default".
std::string AccountOf(const EdlJob& job) {
  for (const Json& object : EdlObjects(job)) {
    if (base::StringOr(object, "kind") != "Pod") continue;
    const std::string account = base::StringOr(base::At(object, "spec"), "serviceAccountName");
    return account.empty() ? "default" : account;
  }
  return "default";
}

// What the master needs must be allowed to its service account: without it, it would wait for ever.
// Not everybody may ask; then `trainyard why` tells what the master waits for.
Result<> CheckMasterRights(const Cluster& cluster, const EdlJob& job) {
  const std::string& name_space = job.job.metadata.name_space;
  const std::string account = AccountOf(job);
  std::string missing;
  for (const auto& right : backend::cluster::MasterRights(false)) {
    std::vector<std::string> verbs;
    for (const std::string& verb : right.verbs) {
      const auto may = cluster.AccountMay(account, verb, right.group, right.resource, name_space);
      if (!may && may.error().kind() == ErrorKind::kForbidden) return {};
      if (!TRY(Result<bool>(may))) verbs.push_back(verb);
    }
    if (verbs.empty()) continue;
    missing += fmt::format("{}{{apiGroups: [\"{}\"], resources: [{}], verbs: [{}]}}",
                           missing.empty() ? "" : ", ", right.group, right.resource,
                           base::Join(verbs, ", "));
  }
  if (missing.empty()) return {};
  return std::unexpected(Error(
      ErrorKind::kForbidden,
      fmt::format("the service account {} of namespace {} may not do what the master needs: add to "
                  "the rules of its Role: {}",
                  account, name_space, missing)));
}

// All of it, or nothing.
Result<> Make(const Cluster& cluster, const EdlJob& job) {
  Made made(cluster.server(), cluster.server());
  const std::string& name_space = job.job.metadata.name_space;
  for (const Json& object : EdlObjects(job)) {
    if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
    TRY(made.Create(kube::Path("v1", CollectionOf(object), name_space), object));
  }
  made.Keep();
  // The master does the same when it starts; it may never, for want of its image.
  return GiveToMaster(cluster, job.job);
}

}  // namespace

int TrainThere(const EdlJob& job, const EdlArgs& args, const std::string& context) {
  const api::Metadata& about = job.job.metadata;
  auto cluster = ClusterOf(context);
  if (!cluster) return Refuse(cluster.error());
  for (const std::string& warning : args.warnings())
    fmt::print(stderr, "trainyard: warning: {}\n", warning);
  CatchInterrupts();
  auto made = CheckNameIsFree(*cluster, job.job);
  if (made) made = CheckMasterRights(*cluster, job);
  if (made) made = Make(*cluster, job);
  if (!made) {
    const int status = Fail(cluster->Explain(made.error()));
    return Interrupted() ? 128 + Interrupted() : status;
  }
  const std::string where = fmt::format("{} -n {}", about.name, about.name_space);
  io::WriteOut(
      1, fmt::format("{} submitted to {}/{}\n", about.name, cluster->context(), about.name_space));
  io::WriteOut(2, fmt::format("  look    kubectl get pods -n {} -l elasticdl-job-name={}\n"
                              "  follow  trainyard logs -f {} --on kubernetes\n"
                              "  delete  trainyard delete {} --on kubernetes\n",
                              about.name_space, about.name, where, where));
  return 0;
}

}  // namespace cli
