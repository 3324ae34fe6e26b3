#include "cli/cluster_gone.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "backend/cluster/objects.h"
#include "backend/cluster/pod.h"
#include "backend/cluster/stored.h"
#include "cli/object.h"
#include "core/dialect.h"
#include "io/clock.h"
#include "kube/api.h"

namespace cli {
namespace {

using base::ErrorKind;
using base::Json;
using base::Result;
using namespace std::chrono_literals;

constexpr base::Duration kMoment = 100ms;
// What nobody uses any more is gone within seconds.
constexpr base::Duration kGoneWithin = 30s;

bool IsOwnedBy(const Json& object, const std::string& uid) {
  const Json& owners = base::At(base::At(object, "metadata"), "ownerReferences");
  return owners.is_array() && std::ranges::any_of(owners.get_array(), [&](const Json& owner) {
           return base::StringOr(owner, "uid") == uid;
         });
}

std::string JobSelector(const std::string& job) {
  return fmt::format("{}={}", backend::cluster::kJobLabel, job);
}

}  // namespace

Result<> Release(kube::Client& client, const Json& pod) {
  const auto read = backend::cluster::ReadPod(pod);
  if (!read || !read->held) return {};
  base::JsonArray others;
  for (const Json& one : ListAt(At(pod, "metadata"), "finalizers")) {
    if (one != Json(backend::cluster::kFinalizer)) others.push_back(one);
  }
  auto released = client.Patch(
      kube::Path("v1", "pods", read->key.name_space, read->key.name),
      base::JsonObject{
          {"metadata", base::JsonObject{{"uid", read->uid}, {"finalizers", std::move(others)}}}});
  if (!released && released.error().kind() != ErrorKind::kNotFound)
    return std::unexpected(released.error());
  return {};
}

Result<std::vector<std::string>> RemovePods(Cluster& cluster, const api::Job& job) {
  kube::Client& client = cluster.client();
  const std::string collection = kube::Path("v1", "pods", job.metadata.name_space);
  const std::string selector = JobSelector(job.metadata.name);
  base::Duration longest = kGoneWithin;
  const base::Time began = io::Now();
  while (true) {
    std::vector<std::string> left;
    for (const Json& object : TRY(client.List(collection, selector))) {
      const auto pod = backend::cluster::ReadPod(object);
      if (!pod || backend::cluster::IsOfAnother(*pod, job.metadata.uid)) continue;
      // Not everybody may delete or change pods; then the operator does.
      auto done = pod->replica.deleting ? Result<>()
                                        : client.Delete(collection + "/" + pod->key.name, pod->uid);
      if (done) done = Release(client, object);
      if (!done && done.error().kind() != ErrorKind::kForbidden &&
          done.error().kind() != ErrorKind::kNotFound && done.error().kind() != ErrorKind::kTaken)
        return std::unexpected(done.error());
      longest = std::max<base::Duration>(longest, kGoneWithin + std::chrono::seconds(pod->grace));
      left.push_back(
          fmt::format("pod {}: node {} does not report its end; if the node is lost: kubectl -n {} "
                      "delete pod {} --force",
                      pod->key.name, pod->node.empty() ? "(none)" : pod->node,
                      pod->key.name_space, pod->key.name));
    }
    if (left.empty() || io::Now() > began + longest) return left;
    if (Interrupted())
      return std::unexpected(base::Error(ErrorKind::kUnavailable, "interrupted"));
    cluster.server().Poll(kMoment);
  }
}

Result<bool> WaitUntilGone(Cluster& cluster, kube::Client& client, const std::string& path) {
  for (const base::Time until = io::Now() + kGoneWithin; io::Now() < until && !Interrupted();) {
    const auto there = client.Get(path);
    if (!there && there.error().kind() == ErrorKind::kNotFound) return true;
    if (!there) return std::unexpected(there.error());
    cluster.server().Poll(kMoment);
  }
  return false;
}

Result<> RemoveOwned(Cluster& cluster, Store store, const api::Job& job) {
  const std::string &name = job.metadata.name, &name_space = job.metadata.name_space;
  // The master of ElasticDL owns the job, not the other way round.
  if (job.extensions.dialect == api::Dialect::kElasticDl) {
    const std::string pod = kube::Path("v1", "pods", name_space, core::MasterName(job));
    const std::string service = kube::Path("v1", "services", name_space, core::MasterName(job));
    for (const std::string& path : {service, pod}) {
      auto removed = cluster.client().Delete(path);
      if (!removed && removed.error().kind() != ErrorKind::kNotFound) return removed;
    }
    TRY(WaitUntilGone(cluster, cluster.client(), pod));
    return {};
  }
  std::vector<std::string> paths = {kube::Path("v1", "configmaps", name_space, name + "-code"),
                                    kube::Path("v1", "secrets", name_space, name + "-env")};
  if (store == Store::kConfigMaps) {
    const std::pair<const char*, const char*> kinds[] = {
        {"v1", "serviceaccounts"},
        {"rbac.authorization.k8s.io/v1", "roles"},
        {"rbac.authorization.k8s.io/v1", "rolebindings"},
        {"v1", "services"},
        {"batch/v1", "jobs"}};
    for (const auto& [version, resource] : kinds)
      paths.push_back(kube::Path(version, resource, name_space, name + "-master"));
  }
  // The cluster removes what we may not look at or delete.
  const auto remove = [&](const Json& object, const std::string& path) -> Result<> {
    if (!IsOwnedBy(object, job.metadata.uid)) return {};
    auto removed = cluster.client().Delete(path);
    if (!removed && removed.error().kind() != ErrorKind::kForbidden &&
        removed.error().kind() != ErrorKind::kNotFound)
      return removed;
    return {};
  };
  for (const std::string& path : paths) {
    if (const auto there = cluster.client().Get(path)) TRY(remove(*there, path));
  }
  const std::string services = kube::Path("v1", "services", name_space);
  if (const auto there = cluster.client().List(services, JobSelector(name))) {
    for (const Json& service : *there)
      TRY(remove(service, services + "/" + kube::Metadata(service, "name")));
  }
  return {};
}

}  // namespace cli
