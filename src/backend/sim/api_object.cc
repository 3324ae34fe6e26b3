#include "backend/sim/api_object.h"

#include <algorithm>

namespace backend::sim {

using base::Json;
using base::JsonArray;
using base::JsonObject;

const Json& MetaOf(const Json& object) {
  static const Json none = JsonObject();
  const Json* meta = base::Find(object, "metadata");
  return meta && meta->is_object() ? *meta : none;
}

JsonObject& MetaOf(Json& object) {
  Json& meta = object.as_object()["metadata"];
  if (!meta.is_object()) meta = JsonObject();
  return meta.as_object();
}

std::string PhaseOf(const Json& pod) {
  const Json* status = base::Find(pod, "status");
  return status ? base::StringOr(*status, "phase") : "";
}

bool HasEnded(const Json& pod) {
  const std::string phase = PhaseOf(pod);
  return phase == "Succeeded" || phase == "Failed";
}

std::vector<std::string> FinalizersOf(const Json& object) {
  std::vector<std::string> out;
  for (const Json& one : ArrayAt(MetaOf(object), "finalizers")) {
    if (one.is_string()) out.emplace_back(one.as_string());
  }
  return out;
}

void SetFinalizers(Json& object, const std::vector<std::string>& finalizers) {
  JsonArray array;
  for (const std::string& one : finalizers) array.push_back(Json(one));
  MetaOf(object)["finalizers"] = std::move(array);
  TidyMeta(object);
}

bool HasFinalizer(const Json& object, std::string_view finalizer) {
  return std::ranges::any_of(ArrayAt(MetaOf(object), "finalizers"), [&](const Json& one) {
    return one.is_string() && std::string_view(one.as_string()) == finalizer;
  });
}

std::optional<int64_t> GraceOf(const Json& object) {
  const Json* grace = base::Find(MetaOf(object), "deletionGracePeriodSeconds");
  if (!grace || !grace->is_int64()) return std::nullopt;
  return grace->as_int64();
}

const JsonObject& ObjectAt(const Json& value, std::string_view key) {
  static const JsonObject none;
  const Json* member = base::Find(value, key);
  return member && member->is_object() ? member->as_object() : none;
}

const JsonArray& ArrayAt(const Json& value, std::string_view key) {
  static const JsonArray none;
  const Json* member = base::Find(value, key);
  return member && member->is_array() ? member->as_array() : none;
}

void TidyMeta(Json& object) {
  JsonObject& meta = MetaOf(object);
  for (std::string_view key : {"labels", "annotations", "finalizers", "ownerReferences",
                               "generateName", "deletionTimestamp"}) {
    const auto it = meta.find(key);
    if (it == meta.end()) continue;
    const Json& value = it->value();
    if (value.is_null() || (value.is_object() && value.as_object().empty()) ||
        (value.is_array() && value.as_array().empty()) ||
        (value.is_string() && value.as_string().empty())) {
      meta.erase(it);
    }
  }
}

}  // namespace backend::sim
