#include "cli/kept_output.h"

#include <fmt/core.h>

#include "api/tfjob.h"
#include "cli/findings.h"
#include "cli/object.h"
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

std::string Told(const std::string& reason, const std::string& words) {
  const std::string fix = FixFor(reason, words);
  return reason + ": " + words + (fix.empty() ? "" : "; " + fix);
}

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

std::string StartTrouble(const Json& pod) {
  const Json& status = At(pod, "status");
  for (const Json& condition : ListAt(status, "conditions")) {
    if (base::StringOr(condition, "reason") == "Unschedulable")
      return Told("Unschedulable", base::StringOr(condition, "message"));
  }
  for (const Json& container : ListAt(status, "containerStatuses")) {
    const Json& waiting = At(At(container, "state"), "waiting");
    const std::string reason = base::StringOr(waiting, "reason");
    if (!reason.empty() && reason != "ContainerCreating")
      return Told(reason, base::StringOr(waiting, "message"));
  }
  return "";
}

}  // namespace cli
