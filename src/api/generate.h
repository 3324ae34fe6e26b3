// Values that a template asks to have generated, from an expression such as "pw-[a-zA-Z0-9]{8}".
//
// As oc: text stands for itself; [...] with a length from {1} to {255} is drawn from ranges of
// letters and digits, \d (digits), \a (letters and digits), \w (these and _) and \A (punctuation).
// In a range lower-case letters come before upper-case ones, and digits last: a-Z is all letters.
// Unlike oc, a [ that begins no such thing is an error and not text: it is a mistake.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace api {

// A number below its argument, each as likely as any other.
using Random = std::function<size_t(size_t)>;

base::Result<std::string> Generate(std::string_view expression, const Random& random);

}  // namespace api
