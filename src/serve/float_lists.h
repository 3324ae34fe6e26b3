// Lists of lists of numbers in JSON, read at once: what nearly every request for predictions
// consists of. Pure.
//
// This is a short cut, and knows no errors. Whoever takes it can also read value by value, and does
// so where this way is closed; both come to the same tensor.
#pragma once

#include <optional>
#include <string>

#include "serve/json_cursor.h"
#include "tensor/tensor.h"

namespace serve {

// What is known of a tensor while its values are read.
struct ListShape {
  tensor::Shape sizes;         // of the lists of each depth; -1: not known yet
  std::optional<size_t> rank;  // the depth of the values
};

// Lists are read that lie less deep than this.
inline constexpr size_t kDeepestList = 64;

// Steps over a value at `depth` that is a list, appends its numbers to `out` as floats, and learns
// its shape. False, and nothing has changed, if it is no list, is none of numbers only, has another
// shape than is known, or lists without a value in it.
bool ReadFloatLists(JsonCursor& json, size_t depth, ListShape& shape, std::string& out);

}  // namespace serve
