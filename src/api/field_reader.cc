#include "api/field_reader.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/core.h>

#include "base/strings.h"

namespace api {
namespace {

using base::Node;

// Of a word that a known one is looked for near to; the search takes time with its length.
constexpr size_t kMaxWord = 80;
constexpr size_t kMaxErrors = 200;
constexpr size_t kMaxListed = 20;

}  // namespace

std::string Quoted(std::string_view text) { return "\"" + base::OneLine(text) + "\""; }

std::string Shown(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "null";
    case Node::Kind::kBool:
      return node.scalar.get_bool() ? "the boolean true" : "the boolean false";
    case Node::Kind::kInt:
    case Node::Kind::kDouble:
      return "the number " + base::CompactJson(node.scalar);
    case Node::Kind::kString:
      return Quoted(node.scalar.get_string());
    case Node::Kind::kMap:
      return "a map";
    case Node::Kind::kList:
      return "a list";
  }
  return "";
}

std::string Listed(const std::vector<std::string>& words) {
  if (words.size() <= kMaxListed) return base::Join(words, ", ");
  return fmt::format("{} and {} more",
                     base::Join({words.begin(), words.begin() + kMaxListed}, ", "),
                     words.size() - kMaxListed);
}

std::string Below(const std::string& path, std::string_view key) {
  return path.empty() ? base::OneLine(key) : path + "." + base::OneLine(key);
}

std::string BelowKey(const std::string& path, std::string_view key) {
  return path + "[" + base::OneLine(key) + "]";
}

std::string BelowIndex(const std::string& path, size_t index) {
  return fmt::format("{}[{}]", path, index);
}

void FieldReader::Fail(Place at, std::string path, std::string detail) {
  if (errors_.size() == kMaxErrors) {
    ++untold_;
  } else {
    errors_.push_back({std::move(path), at.line, at.column, std::move(detail)});
  }
}

void FieldReader::FailUnknown(Place at, const std::string& path, const std::string& what,
                              std::string_view word, const std::vector<std::string>& known) {
  // Looking for the nearest takes time; it is not done for what will not be told.
  if (errors_.size() == kMaxErrors) return Fail(at, path, "");
  const auto nearest = base::Nearest(word.substr(0, kMaxWord), known);
  Fail(at, path,
       nearest ? fmt::format("{}, did you mean {}?", what, *nearest)
               : fmt::format("{}, expected one of: {}", what, Listed(known)));
}

void FieldReader::Warn(const Node& at, const std::string& path, const std::string& text) {
  if (warnings_.size() == kMaxErrors) return;
  const std::string where = at.line ? fmt::format("{}:{}: ", at.line, at.column) : "";
  warnings_.push_back(fmt::format("{}{}: {}", where, path, text));
}

void FieldReader::Require(const Node& map, const std::string& path, std::string detail) {
  if (!meant_.contains(path)) Fail(map, path, std::move(detail));
}

bool FieldReader::IsMap(const Node& node, const std::string& path) {
  if (node.kind == Node::Kind::kMap) return true;
  if (node.kind != Node::Kind::kNull) Fail(node, path, "must be a map, not " + Shown(node));
  return false;
}

bool FieldReader::IsList(const Node& node, const std::string& path) {
  if (node.kind == Node::Kind::kList) return true;
  if (node.kind != Node::Kind::kNull) Fail(node, path, "must be a list, not " + Shown(node));
  return false;
}

bool FieldReader::IsMapItem(const Node& item, const std::string& path) {
  if (item.kind == Node::Kind::kNull) Fail(item, path, "must be a map, not null");
  return IsMap(item, path);
}

void FieldReader::KnownOnly(const Node& map, const std::string& path,
                            const std::vector<std::string>& known) {
  for (const base::NodeMember& member : map.members) {
    if (std::ranges::find(known, member.key) != known.end()) continue;
    const size_t told = errors_.size();
    FailUnknown(member, Below(path, member.key), "unknown field", member.key, known);
    if (errors_.size() == told) continue;
    if (auto nearest = base::Nearest(member.key.substr(0, kMaxWord), known)) {
      meant_.insert(Below(path, *nearest));
    }
  }
}

std::optional<std::string> FieldReader::Text(const Node& node, const std::string& path) {
  if (node.kind == Node::Kind::kString) return std::string(node.scalar.get_string());
  if (node.kind == Node::Kind::kNull) return std::nullopt;
  const bool scalar = node.kind < Node::Kind::kString;
  Fail(node, path, "must be text, not " + Shown(node) + (scalar ? "; put it in quotes" : ""));
  return std::nullopt;
}

std::optional<bool> FieldReader::Flag(const Node& node, const std::string& path) {
  if (node.kind == Node::Kind::kBool) return node.scalar.get_bool();
  if (node.kind != Node::Kind::kNull) {
    Fail(node, path, "must be true or false, not " + Shown(node));
  }
  return std::nullopt;
}

std::optional<int64_t> FieldReader::Whole(const Node& node, const std::string& path, int64_t most) {
  if (node.kind == Node::Kind::kNull) return std::nullopt;
  std::optional<int64_t> value;
  bool too_large = false;
  if (node.scalar.is_int64()) {
    value = node.scalar.get_int64();
  } else if (node.scalar.is_uint64()) {
    too_large = true;
  } else if (node.scalar.is_double()) {
    // 1e3 and 2.0 are whole numbers to kubectl.
    const double number = node.scalar.get_double();
    too_large = std::fabs(number) >= 9e18;
    if (!too_large && number == std::floor(number)) value = static_cast<int64_t>(number);
  }
  if (value && *value <= most && *value >= -most) return value;
  if (value || too_large) {
    const bool negative = node.scalar.is_uint64()   ? false
                          : node.scalar.is_double() ? node.scalar.get_double() < 0
                                                    : *value < 0;
    Fail(node, path,
         fmt::format("must be at {}, not {}",
                     negative ? fmt::format("least {}", -most) : fmt::format("most {}", most),
                     base::CompactJson(node.scalar)));
  } else {
    Fail(node, path, "must be a whole number, not " + Shown(node));
  }
  return std::nullopt;
}

std::map<std::string, std::string> FieldReader::TextMap(const Node& node, const std::string& path) {
  std::map<std::string, std::string> out;
  if (!IsMap(node, path)) return out;
  for (const base::NodeMember& member : node.members) {
    const auto text = Text(member.value, BelowKey(path, member.key));
    if (text || member.value.kind == Node::Kind::kNull) out[member.key] = text.value_or("");
  }
  return out;
}

const Node* FieldReader::Member(const Node& map, std::string_view key) {
  const Node* member = map.Find(key);
  return member && member->kind != Node::Kind::kNull ? member : nullptr;
}

void FieldReader::Text(const Node& map, const std::string& path, std::string_view key,
                       std::string& out) {
  if (const Node* member = Member(map, key)) {
    if (auto text = Text(*member, Below(path, key))) out = std::move(*text);
  }
}

void FieldReader::Flag(const Node& map, const std::string& path, std::string_view key, bool& out) {
  if (const Node* member = Member(map, key)) {
    out = Flag(*member, Below(path, key)).value_or(out);
  }
}

void FieldReader::FailChoice(const Node& at, const std::string& path, const std::string& text,
                             const std::vector<std::string>& names) {
  std::string choice = names.back();
  if (names.size() > 1) {
    choice = base::Join({names.begin(), names.end() - 1}, ", ") + " or " + choice;
  }
  Fail(at, path, fmt::format("must be {}, not {}", choice, Quoted(text)));
}

std::vector<FieldError> FieldReader::InOrder() {
  std::vector<FieldError> out = errors_;
  std::ranges::sort(out, {}, [](const FieldError& error) {
    return std::tuple(error.line, error.column, error.path, error.detail);
  });
  if (untold_) out.push_back({"", 0, 0, fmt::format("and {} more errors", untold_)});
  return out;
}

}  // namespace api
