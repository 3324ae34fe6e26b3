#include "cli/cluster_gone.h"

#include <algorithm>
#include <utility>
#include <vector>

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

}  // namespace

Result<> WaitUntilGone(Cluster& cluster, const std::string& path) {
  for (const base::Time until = io::Now() + kGoneWithin; io::Now() < until && !Interrupted();) {
    const auto there = cluster.client().Get(path);
    if (!there && there.error().kind() == ErrorKind::kNotFound) return {};
    if (!there) return std::unexpected(there.error());
    cluster.server().Poll(kMoment);
  }
  return {};
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
    return WaitUntilGone(cluster, pod);
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
  for (const std::string& path : paths) {
    const auto there = cluster.client().Get(path);
    auto removed =
        there && IsOwnedBy(*there, job.metadata.uid) ? cluster.client().Delete(path) : Result<>();
    // Then the cluster does it. Not everybody may look at, or delete, all that goes.
    if (!removed && removed.error().kind() != ErrorKind::kForbidden &&
        removed.error().kind() != ErrorKind::kNotFound)
      return removed;
  }
  return {};
}

}  // namespace cli
