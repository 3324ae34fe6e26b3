// Objects of a cluster, read without trust: what is not there is nothing, or empty.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/json.h"
#include "kube/api.h"

namespace cli {

using base::At;
using kube::Metadata;

// The items of a list.
inline const base::JsonArray& ListAt(const base::Json& object, std::string_view key) {
  static const base::JsonArray kNone;
  const base::Json& found = At(object, key);
  return found.is_array() ? found.get_array() : kNone;
}

// Whether the condition of this type is True.
inline bool Holds(const base::Json& object, std::string_view type) {
  return std::ranges::any_of(ListAt(At(object, "status"), "conditions"), [&](const base::Json& c) {
    return base::StringOr(c, "type") == type && base::StringOr(c, "status") == "True";
  });
}

}  // namespace cli
