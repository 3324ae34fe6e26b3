// Reading and changing the metadata of objects. Objects that are stored always have metadata.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace backend::sim {

const base::Json& MetaOf(const base::Json& object);
base::JsonObject& MetaOf(base::Json& object);  // made when it is missing

inline std::string NameOf(const base::Json& object) {
  return base::StringOr(MetaOf(object), "name");
}
inline std::string NamespaceOf(const base::Json& object) {
  return base::StringOr(MetaOf(object), "namespace");
}
inline std::string UidOf(const base::Json& object) { return base::StringOr(MetaOf(object), "uid"); }
inline std::string VersionTextOf(const base::Json& object) {
  return base::StringOr(MetaOf(object), "resourceVersion");
}
inline bool IsDeleting(const base::Json& object) {
  return base::Find(MetaOf(object), "deletionTimestamp") != nullptr;
}

// Of pods: Pending, Running, Succeeded, Failed.
std::string PhaseOf(const base::Json& pod);
bool HasEnded(const base::Json& pod);

std::vector<std::string> FinalizersOf(const base::Json& object);
void SetFinalizers(base::Json& object, const std::vector<std::string>& finalizers);
bool HasFinalizer(const base::Json& object, std::string_view finalizer);

// Seconds that are left to it to end by itself; nothing: it is not being deleted.
std::optional<int64_t> GraceOf(const base::Json& object);

// The members of an object or an array; none when it is missing or of another type.
const base::JsonObject& ObjectAt(const base::Json& value, std::string_view key);
const base::JsonArray& ArrayAt(const base::Json& value, std::string_view key);

// Drops what is not kept when it is empty: labels, annotations, finalizers, owner references.
void TidyMeta(base::Json& object);

}  // namespace backend::sim
