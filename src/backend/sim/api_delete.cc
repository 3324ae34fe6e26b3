// DELETE: an object goes at once, or after its grace, or when its last finalizer is gone.
#include <algorithm>

#include <fmt/core.h>

#include "backend/sim/api_object.h"
#include "backend/sim/api_server.h"
#include "base/strings.h"

namespace backend::sim {
namespace {

using base::Json;
using base::JsonObject;
using std::chrono::seconds;

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";

// How long a pod may take to end: only one that is on a node and has not ended takes any time.
int64_t PodGrace(const Json& pod, std::optional<int64_t> asked) {
  const Json* spec = base::Find(pod, "spec");
  if (!spec || base::StringOr(*spec, "nodeName").empty() || HasEnded(pod)) return 0;
  const int64_t grace = asked.value_or(base::IntOr(*spec, "terminationGracePeriodSeconds"));
  return grace < 0 ? 1 : grace;
}

void SetDeletion(Json& object, base::Time when, int64_t grace) {
  JsonObject& meta = MetaOf(object);
  meta["deletionTimestamp"] = base::FormatTime(when);
  meta["deletionGracePeriodSeconds"] = grace;
}

void NextGeneration(Json& object) {
  const int64_t generation = base::IntOr(MetaOf(std::as_const(object)), "generation");
  if (generation > 0) MetaOf(object)["generation"] = generation + 1;
}

// What deletion with this policy means for dependents is written into the finalizers, where the
// garbage collector reads it.
std::vector<std::string> WithPolicy(const Json& object, const std::string& policy) {
  std::vector<std::string> out = FinalizersOf(object);
  const bool orphan = policy == "Orphan" || (policy.empty() && HasFinalizer(object, kOrphan));
  const bool foreground =
      policy == "Foreground" || (policy.empty() && HasFinalizer(object, kForeground));
  std::erase_if(out, [](const std::string& one) { return one == kOrphan || one == kForeground; });
  if (orphan) out.emplace_back(kOrphan);
  if (foreground) out.emplace_back(kForeground);
  return out;
}

}  // namespace

Outcome<ApiServer::DeleteOptions> ApiServer::OptionsOf(const Target& target,
                                                       const std::string& body) const {
  DeleteOptions options{.dry_run = TRY(DryRun(target, "DeleteOptions"))};
  if (const auto grace = base::ParseInt(target.Query("gracePeriodSeconds"))) options.grace = *grace;
  options.propagation = target.Query("propagationPolicy");
  if (body.empty()) return options;
  const base::Result<Json> json = base::ParseJson(body);
  if (!json)
    return BadRequest("couldn't get version/kind; json parse error: " + json.error().text());
  if (const Json* grace = base::Find(*json, "gracePeriodSeconds"); grace && grace->is_int64()) {
    options.grace = grace->as_int64();
  }
  if (const Json* policy = base::Find(*json, "propagationPolicy"); policy && policy->is_string()) {
    options.propagation = policy->as_string();
  }
  if (const Json* conditions = base::Find(*json, "preconditions")) {
    if (base::Find(*conditions, "uid")) options.uid = base::StringOr(*conditions, "uid");
    if (base::Find(*conditions, "resourceVersion")) {
      options.version = base::StringOr(*conditions, "resourceVersion");
    }
  }
  for (const Json* list = base::Find(*json, "dryRun"); list && list->is_array(); list = nullptr) {
    options.dry_run |= !list->as_array().empty();
  }
  constexpr std::array kPolicies = {"Background", "Foreground", "Orphan"};
  if (!options.propagation.empty() &&
      std::ranges::find(kPolicies, options.propagation) == kPolicies.end()) {
    return InvalidObject(
        "DeleteOptions", "meta.k8s.io", "",
        {{FieldError::Kind::kNotSupported, "propagationPolicy", "\"" + options.propagation + "\"",
          "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""}});
  }
  return options;
}

Outcome<Json> ApiServer::Delete(const Target& target, DeleteOptions options) {
  const Resource& resource = *target.resource;
  const Object current = TRY(Existing(target));
  const auto conflict = [&](const std::string& why) {
    return Conflict(resource.QualifiedKind(), resource, std::string(resource.kind), target.name,
                    why);
  };
  if (options.uid && *options.uid != UidOf(*current)) {
    return conflict(fmt::format(
        "the UID in the precondition ({}) does not match the UID in record ({}). The object might "
        "have been deleted and then recreated",
        *options.uid, UidOf(*current)));
  }
  if (options.version && *options.version != VersionTextOf(*current)) {
    return conflict(
        fmt::format("the ResourceVersion in the precondition ({}) does not match the "
                    "ResourceVersion in record ({}). The object might have been modified",
                    *options.version, VersionTextOf(*current)));
  }
  const auto final = [&](const Object& last) -> Json {
    if (resource.returns_deleted) return *last;
    JsonObject details{{"name", target.name}};
    if (!resource.group.empty()) details["group"] = resource.group;
    details["kind"] = resource.plural;
    details["uid"] = UidOf(*last);
    return JsonObject{{"kind", "Status"},
                      {"apiVersion", "v1"},
                      {"metadata", JsonObject()},
                      {"status", "Success"},
                      {"details", std::move(details)}};
  };

  Json next = *current;
  bool graceful = false;
  int64_t grace = 0;
  if (&resource == &kPods && !IsDeleting(*current)) {
    graceful = true;
    grace = PodGrace(*current, options.grace);
    SetDeletion(next, agenda_.now() + seconds(grace), grace);
    NextGeneration(next);
  } else if (const int64_t left = GraceOf(*current).value_or(0); &resource == &kPods && left > 0) {
    // Only a shorter grace changes anything.
    if (!options.grace || std::max<int64_t>(*options.grace, 0) >= left) return final(current);
    graceful = true;
    grace = *options.grace < 0 ? 1 : *options.grace;
    const auto was = base::ParseTime(base::StringOr(MetaOf(*current), "deletionTimestamp"));
    base::Time when = *was - seconds(left) + seconds(grace);
    if (when < agenda_.now()) {
      when = agenda_.now();
      if (grace > 0) grace = 1;
    }
    SetDeletion(next, when, grace);
  }
  const std::vector<std::string> finalizers = WithPolicy(*current, options.propagation);
  SetFinalizers(next, finalizers);
  if (!finalizers.empty() && !graceful) {
    if (!IsDeleting(*current)) NextGeneration(next);
    const auto was = base::ParseTime(base::StringOr(MetaOf(*current), "deletionTimestamp"));
    SetDeletion(next, was && *was <= agenda_.now() ? *was : agenda_.now(), 0);
  }
  const bool stays = !finalizers.empty() || grace > 0;
  if (options.dry_run) {
    const auto planned = std::make_shared<const Json>(std::move(next));
    return stays ? *planned : final(planned);
  }
  if ((graceful || !finalizers.empty()) && next != *current) Stored(target, std::move(next));
  if (stays) return *TRY(Existing(target));
  return final(Erased(target));
}

}  // namespace backend::sim
