#include "cli/deployment.h"

#include <algorithm>
#include <array>

#include "base/result.h"
#include "base/yaml.h"
#include "manifests.h"

namespace cli {
namespace {

using base::Json;

constexpr std::array<std::string_view, 8> kOrder = {
    "Namespace",   "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role",
    "RoleBinding", "ClusterRoleBinding",       "Deployment"};

size_t PlaceOf(const Json& object) {
  return static_cast<size_t>(std::ranges::find(kOrder, base::StringOr(object, "kind")) -
                             kOrder.begin());
}

// Every text that is exactly `from`, wherever it stands: names of namespaces have no other meaning
// in these manifests.
void Replace(Json& value, std::string_view from, const std::string& to) {
  if (value.is_string() && std::string_view(value.get_string()) == from) {
    value = to;
  } else if (value.is_array()) {
    for (Json& item : value.get_array()) Replace(item, from, to);
  } else if (value.is_object()) {
    for (auto& [key, member] : value.get_object()) Replace(member, from, to);
  }
}

// What the operator is told, beside what its manifest says.
void Tell(Json& deployment, const DeploymentWish& wish) {
  Json& container = deployment.at_pointer("/spec/template/spec/containers/0");
  for (const std::string& flag : wish.flags) container.at("args").get_array().emplace_back(flag);
  base::JsonArray env;
  for (const auto& [name, value] : wish.variables)
    env.push_back(base::JsonObject{{"name", name}, {"value", value}});
  if (!env.empty()) container.get_object()["env"] = std::move(env);
}

void Read(std::string_view text, std::vector<Json>& out) {
  const auto documents = base::ReadYamlDocuments(text);
  CHECK(documents);
  for (const base::Node& document : *documents) out.push_back(base::ToJson(document));
}

// What does not say where it belongs belongs to whoever trains.
void AddStorage(const DeploymentWish& wish, std::vector<Json>& out) {
  std::vector<Json> objects;
  Read(wish.storage == "nfs" ? manifests::kStorageNfsYaml : manifests::kStorageHostpathYaml,
       objects);
  for (Json& object : objects) {
    const std::string kind = base::StringOr(object, "kind");
    base::JsonObject& metadata = base::ObjectAt(object.get_object(), "metadata");
    if ((kind == "PersistentVolumeClaim" || kind == "Job") && !metadata.contains("namespace"))
      metadata["namespace"] = wish.claim_namespace;
    out.push_back(std::move(object));
  }
}

}  // namespace

std::vector<Json> OperatorObjects(const DeploymentWish& wish) {
  std::vector<Json> out;
  for (std::string_view text :
       {manifests::kCrdYaml, manifests::kRbacYaml, manifests::kOperatorYaml}) {
    Read(text, out);
  }
  for (Json& object : out) {
    Replace(object, kSystemNamespace, wish.name_space);
    if (!wish.image.empty()) Replace(object, "trainyard:latest", wish.image);
    if (base::StringOr(object, "kind") == "Deployment") Tell(object, wish);
  }
  if (!wish.storage.empty()) AddStorage(wish, out);
  std::ranges::stable_sort(out, {}, PlaceOf);
  return out;
}

std::string Spoken(const Json& object) {
  const Json* metadata = base::Find(object, "metadata");
  const std::string space = metadata ? base::StringOr(*metadata, "namespace") : "";
  return base::StringOr(object, "kind") + " " + (space.empty() ? "" : space + "/") +
         (metadata ? base::StringOr(*metadata, "name") : "");
}

}  // namespace cli
