#include "backend/sim/traffic.h"

#include <fmt/core.h>

#include "backend/sim/api_object.h"

namespace backend::sim {
namespace {

using base::Json;

std::string Subject(const Target& target, const std::string& name) {
  return fmt::format("{} {}", target.resource->plural, KeyOf(target.name_space, name));
}

std::string NameIn(const std::string& body) {
  const base::Result<Json> object = base::ParseJson(body);
  return object ? NameOf(*object) : "";
}

}  // namespace

bool Traffic::IsWrite(const kube::Request& request) {
  if (request.method == "GET") return false;
  const std::optional<Target> target = TargetOf(request.path);
  return target && target->Query("dryRun").empty() && target->resource != &kEvents &&
         target->resource != &kLeases;
}

std::string Traffic::Named(const kube::Request& request) {
  const std::optional<Target> target = TargetOf(request.path);
  if (!target) return request.method + " " + request.path;
  std::string out =
      fmt::format("{} {}", request.method,
                  Subject(*target, target->name.empty() ? NameIn(request.body) : target->name));
  return target->subresource.empty() ? out : out + " " + target->subresource;
}

int32_t Traffic::Sent(const kube::Request& request) {
  writes_.push_back(Named(request));
  if (const std::optional<Target> target = TargetOf(request.path)) Check(request, *target);
  return static_cast<int32_t>(writes_.size()) - 1;
}

void Traffic::Check(const kube::Request& request, const Target& target) {
  if (!finding_.empty()) return;
  const base::Result<Json> body = base::ParseJson(request.body);
  const Json none;
  const Json& said = body ? *body : none;
  if (request.method == "DELETE") {
    const Json* conditions = base::Find(said, "preconditions");
    if (!conditions || base::StringOr(*conditions, "uid").empty()) {
      finding_ = "a deletion that names no uid: " + Named(request);
    }
  }
  if (target.subresource == "status" && VersionTextOf(said).empty()) {
    finding_ = "a status that names no version: " + Named(request);
  }
}

kube::Response Traffic::Served(ApiServer& server, const kube::Request& request) {
  const std::optional<Target> target = TargetOf(request.path);
  if (!target || !IsWrite(request)) return server.Serve(request);
  const std::string key = KeyOf(target->name_space, target->name);
  const Object before = server.store().Get(*target->resource, key);
  kube::Response response = server.Serve(request);
  if (request.method == "POST" && response.status == 201) {
    ++counts_[Subject(*target, NameIn(response.body))].created;
  }
  if (request.method == "DELETE" && before && !IsDeleting(*before)) {
    const Object after = server.store().Get(*target->resource, key);
    if (!after || IsDeleting(*after)) ++counts_[Subject(*target, target->name)].deleted;
  }
  return response;
}

}  // namespace backend::sim
