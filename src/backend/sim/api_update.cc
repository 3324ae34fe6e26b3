// PUT and PATCH: objects that change, and those that go because their last finalizer went.
#include <fmt/core.h>

#include "backend/sim/api_defaults.h"
#include "backend/sim/api_object.h"
#include "backend/sim/api_patch.h"
#include "backend/sim/api_rules.h"
#include "backend/sim/api_server.h"
#include "base/strings.h"

namespace backend::sim {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

void Copy(const Json& from, JsonObject& to, std::string_view key) {
  if (const Json* value = base::Find(from, key)) {
    to[key] = *value;
  } else {
    to.erase(key);
  }
}

// Everything that is neither metadata nor status: a change of it is a new generation.
JsonObject Substance(const Json& object) {
  JsonObject out = object.as_object();
  out.erase("metadata");
  out.erase("status");
  return out;
}

// What a request cannot change, whatever it says: the other half of a subresource, and the
// metadata that is the server's.
Json Prepared(const Resource& resource, const std::string& subresource, const Json& old,
              Json next) {
  if (subresource == "status" && resource.custom) {
    Json whole = old;
    Copy(next, whole.as_object(), "status");
    return whole;
  }
  JsonObject& members = next.as_object();
  if (subresource == "status") {
    Copy(old, members, "spec");
    Copy(MetaOf(old), MetaOf(next), "ownerReferences");
    if (Json* status = members.if_contains("status");
        &resource == &kPods && status && status->is_object() && !base::Find(*status, "qosClass")) {
      Copy(*base::Find(old, "status"), status->as_object(), "qosClass");
    }
  } else if (resource.has_status) {
    Copy(old, members, "status");
  }
  // From here on no member of `next` is added or removed: that would move its metadata.
  JsonObject& meta = MetaOf(next);
  if (UidOf(next).empty()) Copy(MetaOf(old), meta, "uid");
  for (const char* key : {"creationTimestamp", "generation"}) Copy(MetaOf(old), meta, key);
  if (IsDeleting(old)) {
    for (const char* key : {"deletionTimestamp", "deletionGracePeriodSeconds"}) {
      Copy(MetaOf(old), meta, key);
    }
  }
  meta.erase("managedFields");
  FillDefaults(resource, next);
  if (resource.counts_generation && Substance(next) != Substance(old)) {
    MetaOf(next)["generation"] = base::IntOr(MetaOf(old), "generation") + 1;
  }
  return next;
}

}  // namespace

Outcome<kube::Response> ApiServer::Put(const Target& target, Json object, bool dry_run) {
  const auto body = [](const Json& value, int status) {
    return kube::Response{.status = status, .body = base::CompactJson(value)};
  };
  const std::string name = NameOf(object);
  if (name.empty()) {
    return BadRequest("the name of the object (" + target.name +
                      " based on URL) was undeterminable: name must be provided");
  }
  if (name != target.name) {
    return BadRequest(
        fmt::format("the name of the object ({}) does not match the name on the URL "
                    "({})",
                    name, target.name));
  }
  const Object old = store_.Get(*target.resource, KeyOf(target.name_space, target.name));
  if (!old && target.resource->create_on_update && target.subresource.empty()) {
    return body(TRY(Create(target, std::move(object), dry_run)), 201);
  }
  if (!old) return NotFound(*target.resource, target.name);
  // A uid is a condition of its own here.
  if (const std::string uid = UidOf(object); !uid.empty() && uid != UidOf(*old)) {
    return WrongUid(*target.resource, target, uid, UidOf(*old));
  }
  return body(TRY(Update(target, old, std::move(object), dry_run)), 200);
}

Outcome<Json> ApiServer::Patch(const Target& target, const kube::Request& request, bool dry_run) {
  const bool merge = request.content_type == "application/merge-patch+json";
  const bool strategic = request.content_type == "application/strategic-merge-patch+json";
  if (!merge && !strategic) {
    return std::unexpected(Refusal{.code = 415,
                                   .reason = "UnsupportedMediaType",
                                   .message = "415: Unsupported Media Type",
                                   .details = JsonObject()});
  }
  if (strategic && target.resource->custom) {
    return std::unexpected(Refusal{
        .code = 415,
        .reason = "UnsupportedMediaType",
        .message = "the body of the request was in an unknown format - accepted media types "
                   "include: application/json-patch+json, application/merge-patch+json, "
                   "application/apply-patch+yaml"});
  }
  base::Result<Json> patch = base::ParseJson(request.body);
  if (!patch) return BadRequest("error decoding patch: " + patch.error().text());
  const Object old = TRY(Existing(target));
  Json next = strategic ? TRY(StrategicPatched(*old, *patch)) : MergePatched(*old, *patch);
  if (!next.is_object()) return BadRequest("Invalid JSON Patch");
  if (NameOf(next) != target.name) {
    return BadRequest(
        fmt::format("the name of the object ({}) does not match the name on the URL "
                    "({})",
                    NameOf(next), target.name));
  }
  if (NamespaceOf(next) != target.name_space) {
    return BadRequest(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  return Update(target, old, std::move(next), dry_run);
}

Outcome<Json> ApiServer::Update(const Target& target, const Object& old, Json next, bool dry_run) {
  const Resource& resource = *target.resource;
  const std::string version = VersionTextOf(next);
  if (version.empty() && !resource.unconditional_update) {
    return InvalidObject(std::string(resource.plural), std::string(resource.group), target.name,
                         {{FieldError::Kind::kInvalid, "metadata.resourceVersion", "0",
                           "must be specified for an update"}});
  }
  if (!version.empty() && version != VersionTextOf(*old)) return Modified(resource, target.name);
  next = Prepared(resource, target.subresource, *old, std::move(next));
  MetaOf(next)["resourceVersion"] = VersionTextOf(*old);
  if (const FieldErrors wrong = WrongOnUpdate(resource, target.subresource, next, *old);
      !wrong.empty()) {
    return InvalidObject(std::string(resource.kind), std::string(resource.group), target.name,
                         wrong);
  }
  if (admission) {
    if (auto refused = admission("PUT", target, next)) return std::unexpected(*refused);
  }
  if (FinalizersOf(next).empty() && IsDeleting(*old) && GraceOf(*old).value_or(0) == 0) {
    if (!dry_run) Erased(target);
    return next;
  }
  if (dry_run || next == *old) return next;
  return *Stored(target, std::move(next));
}

}  // namespace backend::sim
