#include "base/json.h"

#include <algorithm>
#include <cmath>

#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>
#include <fmt/core.h>

#include "base/strings.h"

namespace base {
namespace {

constexpr size_t kMaxDepth = 128;

// JSON is UTF-8, and we read back what we write: a byte that is none becomes U+FFFD. Programs print
// what they like, and their last lines are in a job's status.
std::string Quoted(std::string_view text) {
  return boost::json::serialize(boost::json::string_view(CleanUtf8(text)));
}

void WriteIndented(const Json& value, int depth, std::string& out) {
  const std::string pad(static_cast<size_t>(depth + 1) * 2, ' ');
  const std::string close(static_cast<size_t>(depth) * 2, ' ');
  if (const JsonObject* object = value.if_object(); object && !object->empty()) {
    out += "{\n";
    bool first = true;
    for (const auto& [key, member] : *object) {
      if (!first) out += ",\n";
      first = false;
      out += pad + Quoted(key) + ": ";
      WriteIndented(member, depth + 1, out);
    }
    out += "\n" + close + "}";
  } else if (const JsonArray* array = value.if_array(); array && !array->empty()) {
    out += "[\n";
    bool first = true;
    for (const Json& item : *array) {
      if (!first) out += ",\n";
      first = false;
      out += pad;
      WriteIndented(item, depth + 1, out);
    }
    out += "\n" + close + "]";
  } else {
    out += CompactJson(value);
  }
}

void WriteCompact(const Json& value, std::string& out) {
  switch (value.kind()) {
    case boost::json::kind::object: {
      out += '{';
      bool first = true;
      for (const auto& [key, member] : value.get_object()) {
        if (!first) out += ',';
        first = false;
        out += Quoted(key);
        out += ':';
        WriteCompact(member, out);
      }
      out += '}';
      return;
    }
    case boost::json::kind::array: {
      out += '[';
      bool first = true;
      for (const Json& item : value.get_array()) {
        if (!first) out += ',';
        first = false;
        WriteCompact(item, out);
      }
      out += ']';
      return;
    }
    case boost::json::kind::string:
      out += Quoted(value.get_string());
      return;
    case boost::json::kind::double_:
      // Boost.JSON writes 0.5 as 5E-1; people read these files. There is no JSON for inf and nan.
      out += std::isfinite(value.get_double()) ? fmt::format("{}", value.get_double()) : "null";
      return;
    default:
      out += boost::json::serialize(value);
  }
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::json::stream_parser parser(boost::json::storage_ptr{}, options);
  boost::json::error_code error;
  const size_t read = parser.write_some(text.data(), text.size(), error);
  if (!error && read < text.size() &&
      text.find_first_not_of(" \t\r\n", read) != std::string_view::npos) {
    error = boost::json::error::extra_data;
  }
  if (!error) parser.finish(error);
  if (error) {
    const std::string_view before = text.substr(0, std::min(read, text.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const size_t column = before.size() - (before.rfind('\n') + 1) + 1;
    return Invalid(fmt::format("{}:{}: not JSON: {}", line, column, error.message()));
  }
  return parser.release();
}

std::string CompactJson(const Json& value) {
  std::string out;
  WriteCompact(value, out);
  return out;
}

std::string IndentedJson(const Json& value) {
  std::string out;
  WriteIndented(value, 0, out);
  return out + "\n";
}

const Json* Find(const Json& value, std::string_view key) {
  const JsonObject* object = value.if_object();
  return object ? object->if_contains(key) : nullptr;
}

const Json& At(const Json& value, std::string_view key) {
  static const Json kNothing;
  const Json* found = Find(value, key);
  return found ? *found : kNothing;
}

JsonObject& ObjectAt(JsonObject& object, std::string_view key) {
  Json& value = object[key];
  if (!value.is_object()) value.emplace_object();
  return value.get_object();
}

JsonArray& ArrayAt(JsonObject& object, std::string_view key) {
  Json& value = object[key];
  if (!value.is_array()) value.emplace_array();
  return value.get_array();
}

std::string StringOr(const Json& value, std::string_view key, std::string_view fallback) {
  const Json* member = Find(value, key);
  if (!member || !member->is_string()) return std::string(fallback);
  return std::string(member->get_string());
}

int64_t IntOr(const Json& value, std::string_view key, int64_t fallback) {
  const Json* member = Find(value, key);
  if (!member) return fallback;
  if (member->is_int64()) return member->get_int64();
  return fallback;
}

bool BoolOr(const Json& value, std::string_view key, bool fallback) {
  const Json* member = Find(value, key);
  return member && member->is_bool() ? member->get_bool() : fallback;
}

}  // namespace base
