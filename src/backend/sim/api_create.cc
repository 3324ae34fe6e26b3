// POST: new objects, and what is done to pods by posting to them.
#include <fmt/core.h>

#include "backend/sim/api_defaults.h"
#include "backend/sim/api_object.h"
#include "backend/sim/api_rules.h"
#include "backend/sim/api_server.h"

namespace backend::sim {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

// The end of a generated name: five characters that form no words.
std::string Suffix(uint64_t number) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  uint64_t mixed = number * 0x9E3779B97F4A7C15u;
  std::string out;
  for (int i = 0; i < 5; ++i, mixed /= kLetters.size()) out += kLetters[mixed % kLetters.size()];
  return out;
}

// Conditions of a pod are a set by type.
void SetCondition(Json& pod, JsonObject condition) {
  Json& conditions = pod.as_object()["status"].as_object()["conditions"];
  if (!conditions.is_array()) conditions = JsonArray();
  for (Json& one : conditions.as_array()) {
    if (base::StringOr(one, "type") == std::string_view(condition["type"].as_string())) {
      one = std::move(condition);
      return;
    }
  }
  conditions.as_array().push_back(std::move(condition));
}

}  // namespace

Outcome<Json> ApiServer::Create(const Target& target, Json object, bool dry_run) {
  const Resource& resource = *target.resource;
  object.as_object()["kind"] = resource.kind;
  object.as_object()["apiVersion"] = resource.ApiVersion();
  if (resource.namespaced && !store_.Get(kNamespaces, target.name_space)) {
    return NotFound(kNamespaces, target.name_space);
  }
  JsonObject& meta = MetaOf(object);
  for (const char* key : {"managedFields", "selfLink", "deletionTimestamp",
                          "deletionGracePeriodSeconds", "generation"}) {
    meta.erase(key);
  }
  const std::string prefix = base::StringOr(MetaOf(std::as_const(object)), "generateName");
  if (NameOf(object).empty() && !prefix.empty()) meta["name"] = prefix + Suffix(++generated_);
  meta["uid"] = fmt::format("00000000-0000-4000-8000-{:012}", ++uids_);
  meta["creationTimestamp"] = base::FormatTime(agenda_.now());
  if (resource.counts_generation) meta["generation"] = 1;
  FillDefaults(resource, object);
  BeginStatus(resource, object);
  if (const FieldErrors wrong = WrongOnCreate(resource, object); !wrong.empty()) {
    return InvalidObject(std::string(resource.kind), std::string(resource.group), NameOf(object),
                         wrong);
  }
  if (admission) {
    if (auto refused = admission("POST", target, object)) return std::unexpected(*refused);
  }
  TRY(CheckQuota(target, object));
  if (!VersionTextOf(object).empty()) {
    return std::unexpected(Refusal{
        .code = 500, .message = "resourceVersion should not be set on objects to be created"});
  }
  if (Object there = store_.Get(resource, KeyOf(target.name_space, NameOf(object)))) {
    auto exists = AlreadyExists(resource, NameOf(object));
    if (IsDeleting(*there)) {
      exists.error().message = "object is being deleted: " + exists.error().message;
    }
    return exists;
  }
  if (dry_run) return object;
  return *Stored(target, std::move(object));
}

Outcome<> ApiServer::CheckQuota(const Target& target, const Json& object) const {
  const auto quota = pod_quota.find(target.name_space);
  if (target.resource != &kPods || quota == pod_quota.end()) return {};
  int64_t used = 0;
  for (const Object& pod : store_.List(kPods, target.name_space)) used += !HasEnded(*pod);
  if (used < quota->second) return {};
  return Forbidden(kPods, NameOf(object),
                   fmt::format("exceeded quota: quota, requested: pods=1, used: pods={}, limited: "
                               "pods={}",
                               used, quota->second));
}

// The scheduler binds a pod to a node; an eviction deletes it and says why.
Outcome<Json> ApiServer::CreateSubresource(const Target& target, const Json& object) {
  const Json success = JsonObject{{"kind", "Status"},
                                  {"apiVersion", "v1"},
                                  {"metadata", JsonObject()},
                                  {"status", "Success"},
                                  {"code", 201}};
  Target pod = target;
  pod.subresource.clear();
  const Object current = TRY(Existing(pod));
  Json next = *current;
  const std::string now = base::FormatTime(agenda_.now());
  if (target.subresource == "eviction") {
    if (!HasEnded(*current) && !IsDeleting(*current)) {
      SetCondition(next, {{"type", "DisruptionTarget"},
                          {"status", "True"},
                          {"lastProbeTime", nullptr},
                          {"lastTransitionTime", now},
                          {"reason", "EvictionByEvictionAPI"},
                          {"message", "Eviction API: evicting"}});
      Stored(pod, std::move(next));
    }
    TRY(Delete(pod, {.uid = UidOf(*current)}));
    return success;
  }
  const auto refuse = [&](const std::string& why) {
    return Conflict("pods/binding", kPods, "pods/binding", target.name, why);
  };
  const Json* to = base::Find(object, "target");
  const Json* spec = base::Find(*current, "spec");
  const std::string uid = UidOf(object);
  if (!uid.empty() && uid != UidOf(*current)) {
    return WrongUid(kPods, target, uid, UidOf(*current));
  }
  if (IsDeleting(*current)) {
    return refuse(
        fmt::format("pod {} is being deleted, cannot be assigned to a host", target.name));
  }
  if (const std::string node = base::StringOr(*spec, "nodeName"); !node.empty()) {
    return refuse(fmt::format("pod {} is already assigned to node \"{}\"", target.name, node));
  }
  next.as_object()["spec"].as_object()["nodeName"] = to ? base::StringOr(*to, "name") : "";
  SetCondition(next, {{"type", "PodScheduled"},
                      {"status", "True"},
                      {"lastProbeTime", nullptr},
                      {"lastTransitionTime", now}});
  Stored(pod, std::move(next));
  return success;
}

}  // namespace backend::sim
