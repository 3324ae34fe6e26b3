#include "base/json.h"

#include <algorithm>
#include <cmath>

#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>
#include <fmt/core.h>

namespace base {
namespace {

constexpr size_t kMaxDepth = 128;

// The length of the UTF-8 sequence that `text` begins with; 0 when it begins with none.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                        : first >= 0xe0 && first <= 0xef ? 3
                        : first >= 0xf0 && first <= 0xf4 ? 4
                                                         : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond the last character.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return length;
}

// JSON is UTF-8, and we read back what we write: a byte that is none becomes U+FFFD. Programs print
// what they like, and their last lines are in a job's status.
std::string Quoted(std::string_view text) {
  std::string clean;
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text.substr(i));
    clean += length ? text.substr(i, length) : "\xef\xbf\xbd";
    i += std::max<size_t>(length, 1);
  }
  return boost::json::serialize(boost::json::string_view(clean));
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
