// The text of a JSON number to the number nearest to it. Pure.
#pragma once

#include <string_view>

namespace serve {

// `text` is as JsonCursor::Number gives it. What is too small to be told from 0 is 0; false if it
// is too large for the type.
bool ReadReal(std::string_view text, float& value);
bool ReadReal(std::string_view text, double& value);

}  // namespace serve
