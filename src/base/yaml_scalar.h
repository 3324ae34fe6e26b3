// What a plain (unquoted) YAML scalar means. Apart from reading, because writing must know it too:
// text that would be read as something else needs quotes.
#pragma once

#include <string_view>

#include "base/json.h"

namespace base {

// null, a boolean, a number (perhaps infinite or NaN) or the text itself, by the rules of yaml.h.
Json ResolvePlain(std::string_view text);

}  // namespace base
