// Changing a tree of nodes: what those share who rewrite a manifest before it is decoded. Whatever
// is put somewhere keeps or gets a position, so that an error found later can say where.
#pragma once

#include <string>
#include <string_view>

#include "base/yaml.h"

namespace api {

// The member of a map, or nullptr.
base::Node* FindIn(base::Node& map, std::string_view key);
// The same when it is a map. One that is absent or null is made; nullptr: it is something else, or
// `map` is no map.
base::Node* MapIn(base::Node& map, std::string_view key);
bool IsEmpty(const base::Node* node);  // absent or null

// The member of a map as text; empty when it is absent or of another kind.
std::string TextIn(const base::Node& map, std::string_view key);

// Removes and returns a member; null when there is none.
base::Node Take(base::Node& map, std::string_view key);
// Appends a member to a map that may be null still; it keeps the position of its value.
base::Node& Put(base::Node& map, std::string key, base::Node value);

base::Node TextNode(std::string_view text, const base::Node& at);
base::Node MapNode(const base::Node& at);  // empty

// Gives all of a tree that has no positions this one.
void Place(base::Node& tree, const base::Node& at);

// The backoffLimit of a Job of Kubernetes that does not say.
inline constexpr int64_t kBackoffLimitOfJob = 6;

}  // namespace api
