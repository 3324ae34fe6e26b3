// Objects of a cluster, read without trust: what is not there is nothing, or empty.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/json.h"

namespace cli {

inline const base::Json& At(const base::Json& object, std::string_view key) {
  static const base::Json kNothing;
  const base::Json* found = base::Find(object, key);
  return found ? *found : kNothing;
}

// The items of a list.
inline const base::JsonArray& ListAt(const base::Json& object, std::string_view key) {
  static const base::JsonArray kNone;
  const base::Json& found = At(object, key);
  return found.is_array() ? found.get_array() : kNone;
}

inline std::string Metadata(const base::Json& object, std::string_view key) {
  return base::StringOr(At(object, "metadata"), key);
}

// Whether the condition of this type is True.
inline bool Holds(const base::Json& object, std::string_view type) {
  return std::ranges::any_of(ListAt(At(object, "status"), "conditions"), [&](const base::Json& c) {
    return base::StringOr(c, "type") == type && base::StringOr(c, "status") == "True";
  });
}

}  // namespace cli
