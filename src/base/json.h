// JSON values. The one place where Boost.JSON is chosen; the rest of the program says base::Json.
//
// Objects keep the order in which their keys were written, and integers stay exact, so what we do
// not understand (a pod template, say) passes through untouched.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "base/result.h"

namespace base {

using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;

// Refuses nesting beyond 128 levels. An error names line and column.
Result<Json> ParseJson(std::string_view text);

std::string CompactJson(const Json& value);   // one line, no spaces
std::string IndentedJson(const Json& value);  // two spaces, ends with a newline

// The member of an object, or nullptr when there is none or value is no object.
const Json* Find(const Json& value, std::string_view key);

// The same with null in place of nothing, for reading far down.
const Json& At(const Json& value, std::string_view key);

// The member of an object that is to be changed, made an empty object or array if it is none.
JsonObject& ObjectAt(JsonObject& object, std::string_view key);
JsonArray& ArrayAt(JsonObject& object, std::string_view key);

// Readers for our own files: the member as text or number, or the fallback when it is absent or of
// another type.
std::string StringOr(const Json& value, std::string_view key, std::string_view fallback = "");
int64_t IntOr(const Json& value, std::string_view key, int64_t fallback = 0);
bool BoolOr(const Json& value, std::string_view key, bool fallback = false);

}  // namespace base
