#include "cli/kept_output.h"

#include <fmt/core.h>

#include "api/tfjob.h"
#include "cli/place.h"
#include "kube/api.h"

namespace cli {
namespace {

using base::ErrorKind;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr std::string_view kFallbackImage = "tensorflow/tensorflow:2.15.0";

}  // namespace

Result<KeptOutput> OutputThere(Cluster& cluster, const Args& args, const std::string& name_space,
                               const std::string& name) {
  KeptOutput out{.image = args.Get("image", kFallbackImage)};
  std::string where = name + "-output";
  auto place = TRY(PlaceOf(args));
  auto job = place->Find(name_space, name);
  if (job) {
    const Standing standing = TRY((*job)->Look());
    where = standing.job.extensions.output;
    out.plain = standing.job.extensions.dialect == api::Dialect::kTfSpawner;
    if (where.empty() && out.plain)
      return base::Invalid(
          fmt::format("the pods of {} have no claim, and what they write goes with them: give "
                      "tf-spawner a --pod-file with a persistentVolumeClaim",
                      name));
    if (where.empty())
      return base::Invalid(
          fmt::format("{} keeps no output: it was run with --output none, or its "
                      "manifest has volumes of its own",
                      name));
    const Json* container =
        api::TensorFlowContainer(standing.job.spec.replicas.begin()->second.pod_template);
    if (container && !args.Has("image")) out.image = base::StringOr(*container, "image");
  } else if (job.error().kind() != ErrorKind::kNotFound ||
             !cluster.client().Get(kube::Path("v1", "persistentvolumeclaims", name_space, where))) {
    return std::unexpected(job.error());
  }
  if (where.find("://") != std::string::npos) {
    out.url = where;
    return out;
  }
  const size_t slash = where.find('/');
  out.claim = where.substr(0, slash);
  if (slash != std::string::npos) out.path = where.substr(slash + 1);
  return out;
}

JsonObject ReaderPod(JsonObject container, JsonArray volumes) {
  container["securityContext"] =
      JsonObject{{"allowPrivilegeEscalation", false},
                 {"capabilities", JsonObject{{"drop", JsonArray{Json("ALL")}}}}};
  return {
      {"terminationGracePeriodSeconds", 0},
      {"automountServiceAccountToken", false},
      {"securityContext", JsonObject{{"runAsNonRoot", true},
                                     {"runAsUser", kOutputUser},
                                     {"runAsGroup", kOutputUser},
                                     {"fsGroup", kOutputUser},
                                     {"seccompProfile", JsonObject{{"type", "RuntimeDefault"}}}}},
      {"containers", JsonArray{std::move(container)}},
      {"volumes", std::move(volumes)}};
}

JsonObject ClaimVolume(const std::string& name, const std::string& claim) {
  return {{"name", name},
          {"persistentVolumeClaim", JsonObject{{"claimName", claim}, {"readOnly", true}}}};
}

}  // namespace cli
