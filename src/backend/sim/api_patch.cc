#include "backend/sim/api_patch.h"

#include <algorithm>

#include "backend/sim/api_object.h"

namespace backend::sim {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

constexpr std::string_view kDelete = "$deleteFromPrimitiveList/";
constexpr std::string_view kOrder = "$setElementOrder/";

// What is said comes first.
void MergeSet(JsonArray& into, const JsonArray& said) {
  JsonArray all = said;
  for (const Json& one : into) {
    if (std::ranges::find(said, one) == said.end()) all.push_back(one);
  }
  into = std::move(all);
}

void MergeByUid(JsonArray& into, const JsonArray& more) {
  for (const Json& one : more) {
    const std::string uid = base::StringOr(one, "uid");
    const auto same = std::ranges::find_if(
        into, [&](const Json& other) { return base::StringOr(other, "uid") == uid; });
    if (base::StringOr(one, "$patch") == "delete") {
      if (same != into.end()) into.erase(same);
    } else if (same != into.end()) {
      *same = MergePatched(*same, one);
    } else {
      into.push_back(one);
    }
  }
}

JsonArray& ArrayIn(JsonObject& object, std::string_view key) {
  Json& value = object[key];
  if (!value.is_array()) value = JsonArray();
  return value.as_array();
}

Outcome<> Merge(JsonObject& into, const JsonObject& patch, const std::string& path) {
  for (const auto& [name, value] : patch) {
    const std::string_view key(name);
    const std::string at = path.empty() ? std::string(key) : path + "." + std::string(key);
    if (key.starts_with(kOrder)) continue;
    if (key.starts_with(kDelete)) {
      const std::string_view list = key.substr(kDelete.size());
      if (!into.contains(list) || !value.is_array()) continue;
      JsonArray& array = ArrayIn(into, list);
      for (const Json& one : value.as_array()) {
        array.erase(std::ranges::remove(array, one).begin(), array.end());
      }
    } else if (value.is_null()) {
      into.erase(key);
    } else if (at == "metadata.finalizers" && value.is_array()) {
      MergeSet(ArrayIn(into, key), value.as_array());
    } else if (at == "metadata.ownerReferences" && value.is_array()) {
      MergeByUid(ArrayIn(into, key), value.as_array());
    } else if (value.is_object()) {
      Json& inner = into[key];
      if (!inner.is_object()) inner = JsonObject();
      TRY(Merge(inner.as_object(), value.as_object(), at));
    } else if (value.is_array()) {
      return BadRequest("the model does not know how to merge the list " + at);
    } else {
      into[key] = value;
    }
  }
  return {};
}

}  // namespace

Json MergePatched(const Json& object, const Json& patch) {
  if (!patch.is_object()) return patch;
  Json out = object.is_object() ? object : Json(JsonObject());
  JsonObject& members = out.as_object();
  for (const auto& [key, value] : patch.as_object()) {
    if (value.is_null()) {
      members.erase(key);
    } else {
      Json& member = members[key];
      member = MergePatched(member, value);
    }
  }
  return out;
}

Outcome<Json> StrategicPatched(const Json& object, const Json& patch) {
  if (!patch.is_object()) return BadRequest("a patch is an object");
  Json out = object;
  TRY(Merge(out.as_object(), patch.as_object(), ""));
  return out;
}

}  // namespace backend::sim
