// YAML, read as kubectl reads it and written as people read it.
//
// A document becomes a tree of nodes, each with the place where it was written, so that whoever
// finds a value wrong can say where it stands. Reading is strict and bounded: a key given twice, a
// tag we do not know, text that is not UTF-8, and anything built to explode are errors.
//
// Plain scalars are resolved as kubectl does it (sigs.k8s.io/yaml, a fork of go-yaml v2), which is
// YAML 1.1 without its dates and base-60 numbers: yes/no, on/off and y/n are booleans, 017 is 15,
// 1_000 is 1000, 2001-01-01 is text. Quoted scalars are always text. We differ in four things: a
// key given twice is an error (kubectl takes the last), a merge key never overrides a key written
// beside it (go-yaml lets the later one win), tags beyond the core ones are errors (!!binary too),
// and integers from 2^63 to 2^64-1 stay exact.
//
// Values only; any thread.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace base {

struct NodeMember;

struct Node {
  enum class Kind { kNull, kBool, kInt, kDouble, kString, kMap, kList };

  Kind kind = Kind::kNull;
  Json scalar;                      // of the kinds before kMap
  std::vector<NodeMember> members;  // of kMap, in the order of the text
  std::vector<Node> items;          // of kList
  int line = 0;                     // 1-based; 0: unknown
  int column = 0;                   // in characters, 1-based

  // The member of a map, or nullptr when there is none or this is no map.
  const Node* Find(std::string_view key) const;
};

struct NodeMember {
  std::string key;  // a number or boolean as key becomes its text, as in kubectl
  int line = 0;     // of the key
  int column = 0;
  Node value;
};

struct YamlError {
  int line = 0;
  int column = 0;
  std::string detail;

  std::string Text() const;  // "3:7: the key a is given twice"
  bool operator==(const YamlError&) const = default;
};

// What one text may take; beyond it the text is refused.
inline constexpr size_t kMaxYamlText = size_t{1} << 20;
inline constexpr size_t kMaxYamlExpansion = size_t{16} << 20;  // bytes of scalars, aliases followed
inline constexpr size_t kMaxYamlNodes = 100'000;               // aliases followed
inline constexpr int kMaxYamlAliases = 64;
inline constexpr int kMaxYamlDepth = 64;

// One document. Empty documents beside it (a stray "---") are no matter, a second one is an error;
// a text without any is null. A text that begins with '{' may be any JSON, also where that is no
// YAML (escaped surrogate pairs); such a tree has no positions.
std::expected<Node, YamlError> ReadYaml(std::string_view text);

// All documents in order; empty ones are left out.
std::expected<std::vector<Node>, YamlError> ReadYamlDocuments(std::string_view text);

// How much a tree is of what is limited above.
struct NodeSize {
  size_t nodes = 0;
  size_t bytes = 0;
  int depth = 0;
};
NodeSize SizeOf(const Node& node);

Json ToJson(const Node& node);
Node ToNode(const Json& value);  // without positions

// Block style, lists not indented below their key, text in quotes only where it would not read back
// as the same text. ReadYaml gives an equal value; infinities and NaN, which have no JSON, become
// null. Strings must be UTF-8.
std::string WriteYaml(const Json& value);

}  // namespace base
