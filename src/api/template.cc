#include "api/template.h"

#include <algorithm>

#include <fmt/core.h>

#include "api/tree.h"
#include "base/strings.h"

namespace api {
namespace {

using base::Node;
using base::NodeMember;

constexpr size_t kMostFlags = 10;  // shown in a message

// Metadata that is something else than a map is reported by whoever reads the object.
void DropNamespace(Node& object, FieldReader& reader) {
  Node* metadata = FindIn(object, "metadata");
  const Node* written = metadata ? FindIn(*metadata, "namespace") : nullptr;
  if (IsEmpty(written) || HasReference(TextIn(*metadata, "namespace"))) return;
  reader.Warn(*written, "metadata.namespace",
              "is dropped, as oc process does: only one with a parameter in it counts");
  Take(*metadata, "namespace");
}

void AddLabels(Node& object, const Node& labels) {
  Node* metadata = MapIn(object, "metadata");
  Node* there = metadata ? MapIn(*metadata, "labels") : nullptr;
  if (!there) return;
  std::set<std::string_view> keys;
  for (const NodeMember& label : labels.members) keys.insert(label.key);
  std::erase_if(there->members, [&](const NodeMember& own) { return keys.contains(own.key); });
  std::ranges::copy(labels.members, std::back_inserter(there->members));
}

// A member or, when it is absent, the map: where to point at.
const Node& At(const Node& map, std::string_view key) {
  const Node* member = FieldReader::Member(map, key);
  return member ? *member : map;
}

// "A, B are required: give --param A=VALUE --param B=VALUE"
std::string Missing(const std::vector<std::string>& names) {
  std::string flags;
  for (const std::string& name : names) flags += fmt::format(" --param {}=VALUE", name);
  return fmt::format("{} {} required: give{}", Listed(names), names.size() == 1 ? "is" : "are",
                     names.size() <= kMostFlags ? flags : " each with --param NAME=VALUE");
}

}  // namespace

bool IsTemplate(const Node& root) {
  const std::string version = TextIn(root, "apiVersion");
  return TextIn(root, "kind") == "Template" &&
         (version == "v1" || version == "template.openshift.io/v1");
}

std::vector<Node> Templates::Expand(Node root) {
  any_ = true;
  const size_t told = reader_.errors().size();
  reader_.KnownOnly(
      root, "", {"apiVersion", "kind", "metadata", "message", "labels", "parameters", "objects"});
  const Values values = ReadParameters(root);
  Node labels = Take(root, "labels");
  Node objects = Take(root, "objects");
  if (reader_.errors().size() != told || !reader_.IsList(objects, "objects")) return {};
  substitution_.Apply(labels, values);
  reader_.TextMap(labels, "labels");
  const base::NodeSize added = base::SizeOf(labels);
  for (Node& object : objects.items) {
    DropNamespace(object, reader_);
    substitution_.Apply(object, values);
    if (labels.members.empty()) continue;
    if (!substitution_.MayAdd(object, added.nodes, added.bytes)) break;
    AddLabels(object, labels);
  }
  if (reader_.errors().size() != told) return {};
  return std::move(objects.items);
}

Values Templates::ReadParameters(const Node& root) {
  Values values;
  const std::string path = "parameters";
  const Node* list = FieldReader::Member(root, path);
  if (!list || !reader_.IsList(*list, path)) return values;
  std::vector<std::string> missing;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const Node& item = list->items[i];
    const std::string here = BelowIndex(path, i);
    const size_t told = reader_.errors().size();
    const Parameter parameter = ReadParameter(item, here);
    if (reader_.errors().size() != told) continue;
    if (parameter.required && parameter.value.empty()) missing.push_back(parameter.name);
    if (!values.emplace(parameter.name, parameter.value).second) {
      reader_.Fail(item, here, parameter.name + " is given twice");
    }
  }
  if (!missing.empty()) reader_.Fail(*list, path, Missing(missing));
  return values;
}

Templates::Parameter Templates::ReadParameter(const Node& node, const std::string& path) {
  Parameter out;
  if (!reader_.IsMapItem(node, path)) return out;
  reader_.KnownOnly(
      node, path, {"name", "displayName", "description", "value", "generate", "from", "required"});
  const size_t told = reader_.errors().size();
  reader_.Text(node, path, "name", out.name);
  if (reader_.errors().size() != told) return out;
  reader_.Text(node, path, "value", out.value);
  reader_.Text(node, path, "generate", out.generate);
  reader_.Text(node, path, "from", out.from);
  reader_.Flag(node, path, "required", out.required);
  if (out.name.empty() || out.name.find_first_not_of(kNameCharacters) != out.name.npos) {
    reader_.Fail(At(node, "name"), Below(path, "name"), "must be letters, digits and '_'");
    return out;
  }
  names_.insert(out.name);
  Fill(out, node, path);
  return out;
}

// Gives a parameter the value that it will have.
void Templates::Fill(Parameter& parameter, const Node& node, const std::string& path) {
  if (const auto given = given_.find(parameter.name); given != given_.end()) {
    parameter.value = given->second;
    return;
  }
  if (!parameter.value.empty() || parameter.generate.empty()) return;
  if (parameter.generate != "expression") {
    return reader_.Fail(At(node, "generate"), Below(path, "generate"),
                        "must be expression, not " + Quoted(parameter.generate));
  }
  auto value = Generate(parameter.from, random_);
  if (!value) return reader_.Fail(At(node, "from"), Below(path, "from"), value.error().text());
  parameter.value = std::move(*value);
}

void Templates::CheckGiven() {
  if (given_.empty()) return;
  if (!any_) return reader_.Fail(Node{}, "", "--param is for a Template, and there is none");
  if (names_.empty()) return reader_.Fail(Node{}, "", "--param: the template has no parameters");
  const std::vector<std::string> names(names_.begin(), names_.end());
  for (const auto& [name, value] : given_) {
    if (names_.contains(name)) continue;
    reader_.FailUnknown(Node{}, "--param " + base::OneLine(name),
                        "the template has no such parameter", name, names);
  }
}

}  // namespace api
