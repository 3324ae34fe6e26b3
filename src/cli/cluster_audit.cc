#include "cli/cluster_audit.h"

#include <fmt/core.h>
#include <poll.h>

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
// A ConfigMap takes a megabyte, and the job is in it as well.
constexpr size_t kMostSaved = 512 << 10;
constexpr size_t kMostAnswer = 256 << 20;

std::string KeptPath(const api::Job& job) {
  return kube::Path("v1", "configmaps", job.metadata.name_space, job.metadata.name + "-job");
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
      cluster.server(), {.ns = job.metadata.name_space,
                         .pod = pod,
                         .command = {"/usr/bin/trainyard", "audit", bound.name + "/" + bound.uid,
                                     "--ledger", std::string(kLedgerMount), "--json"}}));
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

Result<Json> AuditThere(Cluster& cluster, const api::Job& job) {
  const std::string& name = job.metadata.name;
  if (!job.extensions.elastic) return std::unexpected(NotElastic(name));
  const std::string pod = TRY(MasterPod(cluster, job));
  if (!pod.empty() && !api::IsTerminal(job.status)) return AskMaster(cluster, job, pod);
  const Json kept = TRY(cluster.client().Get(KeptPath(job)));
  const std::string saved = base::StringOr(At(kept, "data"), kKey);
  if (!saved.empty()) return base::ParseJson(saved);
  if (!pod.empty()) return AskMaster(cluster, job, pod);
  return std::unexpected(Error(
      ErrorKind::kNotFound,
      fmt::format("the master of {} does not run, and has left no audit: its ledger is in the pod",
                  name)));
}

Result<> SaveAudit(Cluster& cluster, const api::Job& job, const Json& audit) {
  const std::string text = AuditWithin(audit, kMostSaved);
  TRY(cluster.client().Patch(KeptPath(job), JsonObject{{"data", JsonObject{{kKey, text}}}}));
  return {};
}

}  // namespace cli
