#include "cli/elasticdl_master.h"

#include "core/dialect.h"
#include "kube/api.h"

namespace cli {

using base::At;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;

Result<> GiveToMaster(const Cluster& cluster, const api::Job& job) {
  const std::string& name_space = job.metadata.name_space;
  const std::string master = core::MasterName(job);
  const Json pod = TRY(cluster.client().Get(kube::Path("v1", "pods", name_space, master)));
  const JsonObject owner{{"apiVersion", "v1"},
                         {"kind", "Pod"},
                         {"name", master},
                         {"uid", base::StringOr(At(pod, "metadata"), "uid")}};
  const Json patch = JsonObject{{"metadata", JsonObject{{"ownerReferences", JsonArray{owner}}}}};
  for (const std::string& path :
       {kube::Path("v1", "configmaps", name_space, job.metadata.name + "-job"),
        kube::Path("v1", "services", name_space, master)}) {
    TRY(cluster.client().Patch(path, patch));
  }
  return {};
}

}  // namespace cli
