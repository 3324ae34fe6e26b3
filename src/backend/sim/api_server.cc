// Which request is which, and what all of them share.
#include "backend/sim/api_server.h"

#include <fmt/core.h>

#include "backend/sim/api_object.h"
#include "base/strings.h"

namespace backend::sim {

using base::Json;
using base::JsonObject;

ApiServer::ApiServer(const Agenda& agenda)
    : agenda_(agenda), absent_{&kVolcanoPodGroups, &kPluginsPodGroups} {
  for (const char* name : {"default", "kube-system"}) {
    const Json space = JsonObject{{"metadata", JsonObject{{"name", name}}}};
    CHECK(Create(*TargetOf("/api/v1/namespaces"), space, false));
  }
}

void ApiServer::Listen(std::function<void(const Change&)> listener) {
  listeners_.push_back(std::move(listener));
}

kube::Response ApiServer::Serve(const kube::Request& request, std::optional<Version> at) {
  const std::optional<Target> target = TargetOf(request.path);
  if (!target || absent_.contains(target->resource)) {
    return {.status = 404, .body = "404 page not found\n"};
  }
  Outcome<kube::Response> answer = Answer(*target, request, at);
  return answer ? *std::move(answer) : ResponseOf(answer.error());
}

Outcome<kube::Response> ApiServer::Answer(const Target& target, const kube::Request& request,
                                          std::optional<Version> at) {
  const auto body = [](const Json& value, int status = 200) {
    return kube::Response{.status = status, .body = base::CompactJson(value)};
  };
  const bool collection = target.name.empty();
  const bool status = target.subresource == "status" && target.resource->has_status;
  const bool act = target.resource == &kPods &&
                   (target.subresource == "binding" || target.subresource == "eviction");
  if (!target.subresource.empty() && !status && !act) {
    return std::unexpected(Refusal{.code = 404,
                                   .reason = "NotFound",
                                   .message = "the server could not find the requested resource",
                                   .details = JsonObject()});
  }
  if (request.method == "GET" && !act) {
    return body(TRY(collection ? List(target, at) : Read(target, at)));
  }
  if (request.method == "POST" && act) {
    return body(TRY(CreateSubresource(target, TRY(Decode(target, request.body)))), 201);
  }
  if (request.method == "POST" && collection &&
      target.resource->namespaced == !target.name_space.empty()) {
    const bool dry_run = TRY(DryRun(target, "CreateOptions"));
    return body(TRY(Create(target, TRY(Decode(target, request.body)), dry_run)), 201);
  }
  if (request.method == "PUT" && !collection && !act) {
    const bool dry_run = TRY(DryRun(target, "UpdateOptions"));
    return TRY(Put(target, TRY(Decode(target, request.body)), dry_run));
  }
  if (request.method == "PATCH" && !collection && !act) {
    const bool dry_run = TRY(DryRun(target, "PatchOptions"));
    return body(TRY(Patch(target, request, dry_run)));
  }
  if (request.method == "DELETE" && !collection && target.subresource.empty()) {
    return body(TRY(Delete(target, TRY(OptionsOf(target, request.body)))));
  }
  return std::unexpected(
      Refusal{.code = 405,
              .reason = "MethodNotAllowed",
              .message = "the server does not allow this method on the requested resource",
              .details = JsonObject()});
}

Outcome<Json> ApiServer::Decode(const Target& target, const std::string& body) const {
  base::Result<Json> object = base::ParseJson(body);
  if (!object) {
    return BadRequest(
        fmt::format("the object provided is unrecognized (must be of type {}): "
                    "couldn't get version/kind; json parse error: {}",
                    target.resource->kind, object.error().text()));
  }
  if (!object->is_object()) return BadRequest("the body is no object");
  const Resource& resource = *target.resource;
  const std::string kind = base::StringOr(*object, "kind");
  const std::string version = base::StringOr(*object, "apiVersion");
  if (target.subresource == "binding" || target.subresource == "eviction") return *object;
  if (resource.custom && kind.empty()) {
    return BadRequest(fmt::format("Object 'Kind' is missing in '{}'", body));
  }
  if ((!kind.empty() && kind != resource.kind) ||
      (!version.empty() && version != resource.ApiVersion())) {
    return BadRequest(fmt::format("{} in version \"{}\" cannot be handled as a {}", kind, version,
                                  resource.kind));
  }
  JsonObject& members = object->as_object();
  members["kind"] = resource.kind;
  members["apiVersion"] = resource.ApiVersion();
  if (const std::string space = NamespaceOf(*object);
      !space.empty() && resource.namespaced && space != target.name_space) {
    return BadRequest(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  if (resource.namespaced) MetaOf(*object)["namespace"] = target.name_space;
  return *object;
}

Outcome<bool> ApiServer::DryRun(const Target& target, std::string_view options) const {
  const std::string value = target.Query("dryRun");
  if (value.empty() || value == "All") return !value.empty();
  return InvalidObject(std::string(options), "meta.k8s.io", "",
                       {{FieldError::Kind::kNotSupported, "dryRun", "[\"" + value + "\"]",
                         "supported values: \"All\""}});
}

Outcome<Object> ApiServer::Existing(const Target& target) const {
  Object object = store_.Get(*target.resource, KeyOf(target.name_space, target.name));
  if (!object) return NotFound(*target.resource, target.name);
  return object;
}

Object ApiServer::Stored(const Target& target, Json object) {
  const std::string key = KeyOf(target.name_space, NameOf(object));
  const Object stored = store_.Put(*target.resource, key, std::move(object));
  Tell();
  return stored;
}

Object ApiServer::Erased(const Target& target) {
  const Object last = store_.Erase(*target.resource, KeyOf(target.name_space, target.name));
  Tell();
  return last;
}

void ApiServer::Tell() {
  const Change change = store_.changes().back();
  for (const auto& listener : listeners_) listener(change);
}

}  // namespace backend::sim
