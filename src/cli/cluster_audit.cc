#include "cli/cluster_audit.h"

#include <fmt/core.h>
#include <poll.h>

#include "backend/cluster/master_objects.h"
#include "backend/cluster/objects.h"
#include "cli/audit_text.h"
#include "cli/ledger_audit.h"
#include "core/dialect.h"
#include "kube/api.h"
#include "kube/exec.h"

namespace cli {
namespace {

using base::At;
using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonObject;
using base::Result;

constexpr std::string_view kKey = "audit";
// A ConfigMap takes a megabyte, and the job may be in it as well.
constexpr size_t kMostSaved = 512 << 10;
constexpr size_t kMostAnswer = 256 << 20;

// The ConfigMap that has it. A TFJob's master may make ConfigMaps, and not change any: so each life
// of a job has one.
std::string KeptIn(Store store, const api::Job& job) {
  if (store == Store::kConfigMaps) return job.metadata.name + "-job";
  const int64_t life = job.extensions.life;
  return job.metadata.name + (life == 0 ? "-audit" : fmt::format("-audit-{}", life));
}

std::string MapsPath(const api::Job& job, const std::string& name = "") {
  return kube::Path("v1", "configmaps", job.metadata.name_space, name);
}

// The pod in which the master runs; empty: none does.
Result<std::string> MasterPod(Cluster& cluster, const api::Job& job) {
  const bool elasticdl = job.extensions.dialect == api::Dialect::kElasticDl;
  const std::string selector =
      elasticdl ? fmt::format("{}={},{}=edl-master", backend::cluster::kEdlJobLabel,
                              job.metadata.name, backend::cluster::kEdlTypeLabel)
                : fmt::format("job-name={}", core::MasterName(job));
  for (const Json& pod :
       TRY(cluster.client().List(kube::Path("v1", "pods", job.metadata.name_space), selector))) {
    if (base::StringOr(At(pod, "status"), "phase") == "Running")
      return base::StringOr(At(pod, "metadata"), "name");
  }
  return "";
}

Result<Json> AskMaster(Cluster& cluster, const api::Job& job, const std::string& pod) {
  const ledger::Job bound = LedgerJob(job);
  auto exec = TRY(kube::Exec::Start(
      cluster.server(),
      {.ns = job.metadata.name_space,
       .pod = pod,
       .command = {"/usr/bin/trainyard", "audit", bound.name + "/" + bound.uid, "--ledger",
                   std::string(backend::cluster::kLedgerMount), "--json"}}));
  std::string answer, trouble;
  while (!exec->status()) {
    if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
    const short events = exec->wants_write() ? POLLIN | POLLOUT : POLLIN;
    pollfd ready{exec->fd(), events, 0};
    if (!exec->more()) poll(&ready, 1, 100);
    TRY(exec->Advance([&](int fd, std::string_view bytes) {
      std::string& to = fd == 1 ? answer : trouble;
      to += bytes.substr(0, (fd == 1 ? kMostAnswer : 4096) - to.size());
    }));
  }
  const int status = TRY(Result<int>(*exec->status()));
  if (status != 0) {
    return std::unexpected(
        Error(ErrorKind::kUnavailable, fmt::format("the master in {} says: {}", pod, trouble)));
  }
  return base::ParseJson(answer);
}

}  // namespace

Result<Json> AuditThere(Cluster& cluster, Store store, const api::Job& job) {
  const std::string& name = job.metadata.name;
  if (!job.extensions.elastic) return std::unexpected(NotElastic(name));
  const std::string pod = TRY(MasterPod(cluster, job));
  if (!pod.empty() && !api::IsTerminal(job.status)) return AskMaster(cluster, job, pod);
  const auto kept = cluster.client().Get(MapsPath(job, KeptIn(store, job)));
  if (!kept && kept.error().kind() != ErrorKind::kNotFound) return kept;
  const std::string saved = kept ? base::StringOr(At(*kept, "data"), kKey) : "";
  if (!saved.empty()) return base::ParseJson(saved);
  if (!pod.empty()) return AskMaster(cluster, job, pod);
  return std::unexpected(Error(
      ErrorKind::kNotFound,
      fmt::format("the master of {} does not run, and has left no audit: its ledger is in the pod",
                  name)));
}

Result<> SaveAudit(Cluster& cluster, Store store, const api::Job& job, const Json& audit) {
  const std::string name = KeptIn(store, job);
  const JsonObject data{{kKey, AuditWithin(audit, kMostSaved)}};
  if (store == Store::kConfigMaps) {
    TRY(cluster.client().Patch(MapsPath(job, name), JsonObject{{"data", data}}));
    return {};
  }
  auto made = cluster.client().Create(
      MapsPath(job),
      JsonObject{
          {"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata",
           JsonObject{{"name", name},
                      {"labels", JsonObject{{"app.kubernetes.io/managed-by", "trainyard"}}},
                      {"ownerReferences", base::JsonArray{backend::cluster::OwnerReference(job)}}}},
          {"data", data}});
  // Written before we were started again.
  if (!made && made.error().kind() != ErrorKind::kTaken) return std::unexpected(made.error());
  return {};
}

}  // namespace cli
