#include "api/substitute.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "api/tree.h"
#include "base/strings.h"

namespace api {
namespace {

using base::Node;
using base::NodeMember;

// ${NAME} or ${{NAME}} in a text.
struct Reference {
  size_t begin = 0;
  size_t end = 0;
  std::string_view name;
  bool is_value = false;  // ${{NAME}}
};

std::optional<Reference> FindReference(std::string_view text, size_t from) {
  for (size_t at = text.find("${", from); at != text.npos; at = text.find("${", at + 2)) {
    const bool is_value = text.substr(at + 2).starts_with('{');
    const std::string_view close = is_value ? "}}" : "}";
    const size_t name = at + 1 + close.size();
    const size_t end = text.find_first_not_of(kNameCharacters, name);
    if (end == text.npos || end == name || !text.substr(end).starts_with(close)) continue;
    return Reference{at, end + close.size(), text.substr(name, end - name), is_value};
  }
  return std::nullopt;
}

// The number 1e999 can be parsed and has no JSON.
bool IsFinite(const Node& node) {
  if (node.scalar.is_double() && !std::isfinite(node.scalar.get_double())) return false;
  return std::ranges::all_of(node.items, IsFinite) &&
         std::ranges::all_of(node.members, IsFinite, &NodeMember::value);
}

}  // namespace

bool HasReference(std::string_view text) {
  std::optional<Reference> found = FindReference(text, 0);
  while (found && found->is_value) found = FindReference(text, found->end);
  return found.has_value();
}

void Substitution::Visit(Node& node, const Values& values, int depth) {
  if (is_full_) return;
  if (node.kind == Node::Kind::kString) return VisitText(node, values, depth);
  for (Node& item : node.items) Visit(item, values, depth + 1);
  for (NodeMember& member : node.members) Visit(member.value, values, depth + 1);
  VisitKeys(node, values);
}

void Substitution::VisitKeys(Node& map, const Values& values) {
  bool changed = false;
  for (NodeMember& member : map.members) {
    const std::string key = Replaced(member.key, values, member.value);
    changed = changed || key != member.key;
    member.key = key;
  }
  if (!changed) return;
  std::set<std::string_view> keys;
  for (const NodeMember& member : map.members) {
    if (!keys.insert(member.key).second) {
      reader_.Fail(member, "", fmt::format("the key {} is given twice", Quoted(member.key)));
    }
  }
}

void Substitution::VisitText(Node& node, const Values& values, int depth) {
  const std::string text(node.scalar.get_string());
  const auto reference = FindReference(text, 0);
  if (!reference) return;
  const bool is_whole = reference->begin == 0 && reference->end == text.size();
  if (reference->is_value && is_whole) {
    const auto value = values.find(reference->name);
    if (value != values.end()) return PutValue(node, value->second, depth);
  }
  node.scalar = base::Json(Replaced(text, values, node));
}

std::string Substitution::Replaced(std::string_view text, const Values& values, const Node& at) {
  std::string out;
  size_t done = 0;
  while (const auto reference = FindReference(text, done)) {
    const std::string_view written =
        text.substr(reference->begin, reference->end - reference->begin);
    const auto value = values.find(reference->name);
    out += text.substr(done, reference->begin - done);
    done = reference->end;
    if (value == values.end()) {
      TellOnce(at, std::string(written), "stays as it is: the template has no such parameter");
    } else if (reference->is_value) {
      TellOnce(at, std::string(written), "stays as it is: it must be the whole of a value");
    } else if (MayAdd(at, 0, value->second.size())) {
      out += value->second;
      continue;
    }
    out += written;
  }
  out += text.substr(done);
  return out;
}

void Substitution::PutValue(Node& node, const std::string& value, int depth) {
  if (!MayAdd(node, 0, value.size())) return;
  const auto json = base::ParseJson(value);
  Node made = json ? base::ToNode(*json) : Node{};
  if (!json || !IsFinite(made)) {
    node.scalar = base::Json(value);
    return;
  }
  const base::NodeSize size = base::SizeOf(made);
  if (!MayAdd(node, size.nodes, 0)) return;
  if (depth + size.depth - 1 > base::kMaxYamlDepth) {
    return reader_.Fail(node, "", fmt::format("nested deeper than {} levels", base::kMaxYamlDepth));
  }
  Place(made, node);
  node = std::move(made);
}

bool Substitution::MayAdd(const Node& at, size_t nodes, size_t bytes) {
  if (is_full_) return false;
  nodes_ += nodes;
  bytes_ += bytes;
  is_full_ = nodes_ > base::kMaxYamlNodes || bytes_ > base::kMaxYamlExpansion;
  if (is_full_) reader_.Fail(at, "", "parameters and labels make the template too large");
  return !is_full_;
}

void Substitution::TellOnce(const Node& at, const std::string& reference, const std::string& text) {
  if (told_.insert(reference).second) reader_.Warn(at, base::OneLine(reference), text);
}

}  // namespace api
