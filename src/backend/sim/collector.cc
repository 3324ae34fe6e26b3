#include "backend/sim/collector.h"

#include <algorithm>

#include <fmt/core.h>

#include "backend/sim/api_object.h"

namespace backend::sim {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using namespace std::chrono_literals;

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";

std::string PathOf(const Resource& resource, const Json& object) {
  const std::string space = NamespaceOf(object);
  return fmt::format("/{}/{}{}/{}/{}", resource.group.empty() ? "api" : "apis",
                     resource.ApiVersion(), space.empty() ? "" : "/namespaces/" + space,
                     resource.plural, NameOf(object));
}

const Resource* ResourceOf(const Json& owner) {
  for (const Resource* resource : AllResources()) {
    if (resource->kind == base::StringOr(owner, "kind") &&
        resource->ApiVersion() == base::StringOr(owner, "apiVersion")) {
      return resource;
    }
  }
  return nullptr;
}

void Apply(ApiServer& server, const Resource& resource, const Json& object, JsonObject meta) {
  meta["uid"] = UidOf(object);
  meta["resourceVersion"] = VersionTextOf(object);
  server.Serve({.method = "PATCH",
                .path = PathOf(resource, object),
                .content_type = "application/merge-patch+json",
                .body = base::CompactJson(JsonObject{{"metadata", std::move(meta)}})});
}

// Calls `visit` with everything that names an owner, until it says to stop.
template <typename Visit>
void EachDependent(const ApiServer& server, const std::string& uid, Visit visit) {
  for (const Resource* resource : AllResources()) {
    for (const Object& object : server.store().List(*resource, "")) {
      for (const Json& owner : ArrayAt(MetaOf(*object), "ownerReferences")) {
        if (base::StringOr(owner, "uid") == uid) visit(*resource, *object, owner);
      }
    }
  }
}

JsonArray OwnersWithout(const Json& object, const std::vector<std::string>& uids) {
  JsonArray out;
  for (const Json& owner : ArrayAt(MetaOf(object), "ownerReferences")) {
    if (std::ranges::find(uids, base::StringOr(owner, "uid")) == uids.end()) out.push_back(owner);
  }
  return out;
}

}  // namespace

Collector::Collector(Agenda& agenda, ApiServer& server, Random& random)
    : agenda_(agenda), server_(server), random_(random) {
  server.Listen([this](const Change&) { Soon(); });
}

void Collector::Soon() {
  if (std::exchange(planned_, true)) return;
  agenda_.In(random_.Between(50ms, 500ms), [this] {
    planned_ = false;
    Scan();
  });
}

void Collector::Scan() {
  for (const Resource* resource : AllResources()) {
    for (const Object& object : server_.store().List(*resource, "")) {
      if (IsDeleting(*object)) {
        ScanOwner(*resource, *object);
      } else if (!ArrayAt(MetaOf(*object), "ownerReferences").empty()) {
        ScanDependent(*resource, *object);
      }
    }
  }
}

void Collector::ScanDependent(const Resource& resource, const Json& object) {
  bool solid = false, waiting = false;
  std::vector<std::string> leaving;
  for (const Json& owner : ArrayAt(MetaOf(object), "ownerReferences")) {
    const Resource* kind = ResourceOf(owner);
    if (!kind) {  // of a kind that we know nothing of: left alone
      solid = true;
      continue;
    }
    const Object there = server_.store().Get(
        *kind, KeyOf(kind->namespaced ? NamespaceOf(object) : "", base::StringOr(owner, "name")));
    const std::string uid = base::StringOr(owner, "uid");
    if (!there || UidOf(*there) != uid) {
      leaving.push_back(uid);
    } else if (IsDeleting(*there) && HasFinalizer(*there, kForeground)) {
      leaving.push_back(uid);
      waiting = true;
    } else {
      solid = true;
    }
  }
  if (leaving.empty()) return;
  if (solid) {
    JsonArray rest = OwnersWithout(object, leaving);
    return Apply(server_, resource, object, {{"ownerReferences", std::move(rest)}});
  }
  bool has_dependents = false;
  EachDependent(server_, UidOf(object),
                [&](const Resource&, const Json&, const Json&) { has_dependents = true; });
  server_.Serve(
      {.method = "DELETE",
       .path = PathOf(resource, object),
       .content_type = "application/json",
       .body = base::CompactJson(JsonObject{
           {"preconditions", JsonObject{{"uid", UidOf(object)}}},
           {"propagationPolicy", waiting && has_dependents ? "Foreground" : "Background"}})});
}

void Collector::ScanOwner(const Resource& resource, const Json& object) {
  const bool orphan = HasFinalizer(object, kOrphan);
  if (!orphan && !HasFinalizer(object, kForeground)) return;
  bool blocked = false;
  EachDependent(server_, UidOf(object),
                [&](const Resource& kind, const Json& dependent, const Json& owner) {
                  if (orphan) {
                    JsonArray rest = OwnersWithout(dependent, {UidOf(object)});
                    Apply(server_, kind, dependent, {{"ownerReferences", std::move(rest)}});
                  } else {
                    blocked |= base::BoolOr(owner, "blockOwnerDeletion");
                  }
                });
  if (blocked) return;
  JsonArray rest;
  for (const std::string& one : FinalizersOf(object)) {
    if (one != (orphan ? kOrphan : kForeground)) rest.push_back(Json(one));
  }
  Apply(server_, resource, object, {{"finalizers", std::move(rest)}});
}

}  // namespace backend::sim
