#include "api/tree.h"

#include <algorithm>

namespace api {

using base::Node;
using base::NodeMember;

Node* FindIn(Node& map, std::string_view key) {
  const auto found = std::ranges::find(map.members, key, &NodeMember::key);
  return found == map.members.end() ? nullptr : &found->value;
}

Node* MapIn(Node& map, std::string_view key) {
  if (map.kind != Node::Kind::kMap) return nullptr;
  Node* member = FindIn(map, key);
  if (!member) return &Put(map, std::string(key), MapNode(map));
  if (member->kind == Node::Kind::kNull) *member = MapNode(*member);
  return member->kind == Node::Kind::kMap ? member : nullptr;
}

bool IsEmpty(const Node* node) { return !node || node->kind == Node::Kind::kNull; }

std::string TextIn(const Node& map, std::string_view key) {
  const Node* member = map.Find(key);
  if (!member || member->kind != Node::Kind::kString) return "";
  return std::string(member->scalar.get_string());
}

Node Take(Node& map, std::string_view key) {
  const auto found = std::ranges::find(map.members, key, &NodeMember::key);
  if (found == map.members.end()) return {};
  Node value = std::move(found->value);
  map.members.erase(found);
  return value;
}

Node& Put(Node& map, std::string key, Node value) {
  if (map.kind == Node::Kind::kNull) {
    map.kind = Node::Kind::kMap;
    if (!map.line) {
      map.line = value.line;
      map.column = value.column;
    }
  }
  const int line = value.line;
  const int column = value.column;
  map.members.push_back({std::move(key), line, column, std::move(value)});
  return map.members.back().value;
}

Node TextNode(std::string_view text, const Node& at) {
  Node node;
  node.kind = Node::Kind::kString;
  node.scalar = base::Json(text);
  node.line = at.line;
  node.column = at.column;
  return node;
}

Node MapNode(const Node& at) {
  Node node;
  node.kind = Node::Kind::kMap;
  node.line = at.line;
  node.column = at.column;
  return node;
}

void Place(Node& tree, const Node& at) {
  tree.line = at.line;
  tree.column = at.column;
  for (Node& item : tree.items) Place(item, at);
  for (NodeMember& member : tree.members) {
    member.line = at.line;
    member.column = at.column;
    Place(member.value, at);
  }
}

}  // namespace api
