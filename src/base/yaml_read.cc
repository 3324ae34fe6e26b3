// Reading YAML: libyaml's events become a tree.
//
// The tree is built by recursion over the events, one call a nesting level, so the depth limit also
// bounds the stack. An alias is replaced by a copy of its anchor's node; every copy, and every
// node kept for an anchor, is charged to one budget, which is what stops a "billion laughs": a text
// of a kilobyte that stands for gigabytes.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>
#include <yaml.h>

#include "base/strings.h"
#include "base/yaml.h"
#include "base/yaml_scalar.h"

namespace base {
namespace {

template <typename T>
using Read = std::expected<T, YamlError>;

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

std::unexpected<YamlError> Fail(const yaml_mark_t& mark, std::string detail) {
  return std::unexpected(YamlError{static_cast<int>(mark.line) + 1,
                                   static_cast<int>(mark.column) + 1, std::move(detail)});
}

struct Event {
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&raw); }
  yaml_event_t raw = {};
};

std::string_view View(const yaml_char_t* text) {
  return text ? std::string_view(reinterpret_cast<const char*>(text)) : std::string_view();
}

// The place of a byte, its column in characters as libyaml counts them.
YamlError At(std::string_view text, size_t offset, std::string detail) {
  YamlError error{1, 1, std::move(detail)};
  for (char c : text.substr(0, std::min(offset, text.size()))) {
    if (c == '\n') {
      ++error.line;
      error.column = 1;
    } else if ((c & 0xC0) != 0x80) {
      ++error.column;
    }
  }
  return error;
}

Node::Kind KindOf(const Json& scalar) {
  switch (scalar.kind()) {
    case boost::json::kind::bool_:
      return Node::Kind::kBool;
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
      return Node::Kind::kInt;
    case boost::json::kind::double_:
      return Node::Kind::kDouble;
    case boost::json::kind::string:
      return Node::Kind::kString;
    case boost::json::kind::array:
      return Node::Kind::kList;
    case boost::json::kind::object:
      return Node::Kind::kMap;
    default:
      return Node::Kind::kNull;
  }
}

class Loader {
 public:
  explicit Loader(std::string_view text) : text_(text) {
    CHECK(yaml_parser_initialize(&parser_));
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader() { yaml_parser_delete(&parser_); }

  // Whether libyaml itself could not read the text, rather than one of our rules.
  bool is_no_yaml() const { return is_no_yaml_; }

  Read<std::vector<Node>> Documents() {
    std::vector<Node> documents;
    while (true) {
      Event event;
      TRY(Next(event));
      if (event.raw.type == YAML_STREAM_END_EVENT) return documents;
      if (event.raw.type != YAML_DOCUMENT_START_EVENT) continue;  // the stream's start
      anchors_.clear();
      Event root;
      TRY(Next(root));
      Node node = TRY(Value(root.raw, 1));
      if (node.kind != Node::Kind::kNull) documents.push_back(std::move(node));
      Event end;
      TRY(Next(end));
    }
  }

 private:
  Read<void> Next(Event& event) {
    if (yaml_parser_parse(&parser_, &event.raw)) return {};
    is_no_yaml_ = true;
    const std::string problem = parser_.problem ? parser_.problem : "not YAML";
    if (parser_.error == YAML_READER_ERROR) {
      return std::unexpected(At(text_, parser_.problem_offset, problem));
    }
    return Fail(parser_.problem_mark, parser_.context ? problem + " " + parser_.context : problem);
  }

  Read<void> Charge(const yaml_mark_t& mark, const NodeSize& size) {
    nodes_ += size.nodes;
    bytes_ += size.bytes;
    if (nodes_ > kMaxYamlNodes) {
      return Fail(mark, fmt::format("more than {} values", kMaxYamlNodes));
    }
    if (bytes_ > kMaxYamlExpansion) {
      return Fail(mark, fmt::format("expands to more than {} MiB", kMaxYamlExpansion >> 20));
    }
    return {};
  }

  Read<Node> Value(const yaml_event_t& event, int depth) {
    if (depth > kMaxYamlDepth) {
      return Fail(event.start_mark, fmt::format("nested deeper than {} levels", kMaxYamlDepth));
    }
    if (event.type == YAML_ALIAS_EVENT) return Alias(event, depth);
    Node node;
    node.line = static_cast<int>(event.start_mark.line) + 1;
    node.column = static_cast<int>(event.start_mark.column) + 1;
    std::string anchor;
    switch (event.type) {
      case YAML_SCALAR_EVENT:
        anchor = View(event.data.scalar.anchor);
        TRY(Scalar(event, node));
        break;
      case YAML_SEQUENCE_START_EVENT:
        anchor = View(event.data.sequence_start.anchor);
        TRY(CheckTag(event, View(event.data.sequence_start.tag), "seq"));
        TRY(Charge(event.start_mark, {1, 8, 1}));
        TRY(Items(node, depth));
        break;
      case YAML_MAPPING_START_EVENT:
        anchor = View(event.data.mapping_start.anchor);
        TRY(CheckTag(event, View(event.data.mapping_start.tag), "map"));
        TRY(Charge(event.start_mark, {1, 8, 1}));
        TRY(Members(node, depth));
        break;
      default:
        return Fail(event.start_mark, "no value here");
    }
    if (!anchor.empty()) {
      TRY(Charge(event.start_mark, SizeOf(node)));
      anchors_[anchor] = node;
    }
    return node;
  }

  Read<Node> Alias(const yaml_event_t& event, int depth) {
    const std::string name(View(event.data.alias.anchor));
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) {
      return Fail(event.start_mark, fmt::format("no anchor &{} before this alias", OneLine(name)));
    }
    if (++aliases_ > kMaxYamlAliases) {
      return Fail(event.start_mark, fmt::format("more than {} aliases", kMaxYamlAliases));
    }
    const NodeSize size = SizeOf(found->second);
    TRY(Charge(event.start_mark, size));
    if (depth + size.depth - 1 > kMaxYamlDepth) {
      return Fail(event.start_mark, fmt::format("nested deeper than {} levels", kMaxYamlDepth));
    }
    return found->second;
  }

  Read<void> CheckTag(const yaml_event_t& event, std::string_view tag, std::string_view expected) {
    if (tag.empty() || tag == "!") return {};
    if (tag.starts_with(kTagPrefix) && tag.substr(kTagPrefix.size()) == expected) return {};
    return Fail(event.start_mark, fmt::format("the tag {} is not supported here", OneLine(tag)));
  }

  Read<void> Scalar(const yaml_event_t& event, Node& node) {
    const auto& scalar = event.data.scalar;
    const std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    TRY(Charge(event.start_mark, {1, text.size(), 1}));
    std::string_view tag = View(scalar.tag);
    const bool plain = scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (tag.empty()) {
      node.scalar = plain ? ResolvePlain(text) : Json(text);
    } else if (tag == "!" || tag == "tag:yaml.org,2002:str") {
      node.scalar = text;
    } else {
      node.scalar = ResolvePlain(text);
      if (tag == "tag:yaml.org,2002:float" && node.scalar.is_number()) {
        node.scalar = node.scalar.to_number<double>();
      }
      const bool fits = tag == "tag:yaml.org,2002:null"    ? node.scalar.is_null()
                        : tag == "tag:yaml.org,2002:bool"  ? node.scalar.is_bool()
                        : tag == "tag:yaml.org,2002:int"   ? KindOf(node.scalar) == Node::Kind::kInt
                        : tag == "tag:yaml.org,2002:float" ? node.scalar.is_double()
                                                           : false;
      if (!fits) {
        return Fail(event.start_mark,
                    fmt::format("the tag {} is not supported here", OneLine(tag)));
      }
    }
    if (node.scalar.is_double() && !std::isfinite(node.scalar.get_double())) {
      return Fail(event.start_mark, fmt::format("{} has no JSON form", text));
    }
    node.kind = KindOf(node.scalar);
    return {};
  }

  Read<void> Items(Node& node, int depth) {
    node.kind = Node::Kind::kList;
    while (true) {
      Event event;
      TRY(Next(event));
      if (event.raw.type == YAML_SEQUENCE_END_EVENT) return {};
      node.items.push_back(TRY(Value(event.raw, depth + 1)));
    }
  }

  Read<void> Members(Node& node, int depth) {
    node.kind = Node::Kind::kMap;
    std::set<std::string> keys;
    std::vector<Node> merged;
    while (true) {
      Event event;
      TRY(Next(event));
      if (event.raw.type == YAML_MAPPING_END_EVENT) break;
      const bool is_merge = event.raw.type == YAML_SCALAR_EVENT &&
                            event.raw.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                            View(event.raw.data.scalar.value) == "<<";
      Node key = TRY(Value(event.raw, depth + 1));
      Event value_event;
      TRY(Next(value_event));
      Node value = TRY(Value(value_event.raw, depth + 1));
      if (is_merge) {
        TRY(CollectMerged(event.raw.start_mark, std::move(value), merged));
        continue;
      }
      NodeMember member{.key = TRY(KeyText(event.raw.start_mark, key)),
                        .line = static_cast<int>(event.raw.start_mark.line) + 1,
                        .column = static_cast<int>(event.raw.start_mark.column) + 1,
                        .value = std::move(value)};
      if (!keys.insert(member.key).second) {
        return Fail(event.raw.start_mark,
                    fmt::format("the key {} is given twice", OneLine(member.key)));
      }
      node.members.push_back(std::move(member));
    }
    for (Node& map : merged) {
      for (NodeMember& member : map.members) {
        if (keys.insert(member.key).second) node.members.push_back(std::move(member));
      }
    }
    return {};
  }

  Read<void> CollectMerged(const yaml_mark_t& mark, Node value, std::vector<Node>& merged) {
    if (value.kind == Node::Kind::kMap) {
      merged.push_back(std::move(value));
      return {};
    }
    const bool maps =
        value.kind == Node::Kind::kList && std::ranges::all_of(value.items, [](const Node& item) {
          return item.kind == Node::Kind::kMap;
        });
    if (!maps) return Fail(mark, "<< takes a map or a list of maps");
    std::ranges::move(value.items, std::back_inserter(merged));
    return {};
  }

  Read<std::string> KeyText(const yaml_mark_t& mark, const Node& key) {
    switch (key.kind) {
      case Node::Kind::kString:
        return std::string(key.scalar.get_string());
      case Node::Kind::kBool:
      case Node::Kind::kInt:
      case Node::Kind::kDouble:
        return CompactJson(key.scalar);
      default:
        return Fail(mark, "a key must be text");
    }
  }

  std::string_view text_;
  yaml_parser_t parser_;
  bool is_no_yaml_ = false;
  std::map<std::string, Node> anchors_;
  int aliases_ = 0;
  size_t nodes_ = 0;
  size_t bytes_ = 0;
};

std::string_view WithoutBom(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

NodeSize DepthOf(const Json& value, int depth) {
  NodeSize size{1, 8, depth};
  if (depth > kMaxYamlDepth) return size;
  const auto add = [&](const Json& child) {
    const NodeSize inner = DepthOf(child, depth + 1);
    size.nodes += inner.nodes;
    size.depth = std::max(size.depth, inner.depth);
  };
  if (const JsonArray* array = value.if_array()) {
    for (const Json& item : *array) add(item);
  } else if (const JsonObject* object = value.if_object()) {
    for (const auto& [key, member] : *object) add(member);
  }
  return size;
}

}  // namespace

const Node* Node::Find(std::string_view key) const {
  const auto found = std::ranges::find(members, key, &NodeMember::key);
  return found == members.end() ? nullptr : &found->value;
}

NodeSize SizeOf(const Node& node) {
  NodeSize size{1, node.scalar.is_string() ? node.scalar.get_string().size() : 8, 1};
  const auto add = [&size](const Node& child) {
    const NodeSize inner = SizeOf(child);
    size.nodes += inner.nodes;
    size.bytes += inner.bytes;
    size.depth = std::max(size.depth, inner.depth + 1);
  };
  for (const NodeMember& member : node.members) {
    size.bytes += member.key.size();
    add(member.value);
  }
  for (const Node& item : node.items) add(item);
  return size;
}

std::string YamlError::Text() const {
  return line ? fmt::format("{}:{}: {}", line, column, detail) : detail;
}

std::expected<std::vector<Node>, YamlError> ReadYamlDocuments(std::string_view text) {
  text = WithoutBom(text);
  if (text.size() > kMaxYamlText) {
    return std::unexpected(YamlError{1, 1, fmt::format("larger than {} MiB", kMaxYamlText >> 20)});
  }
  Loader loader(text);
  auto documents = loader.Documents();
  if (documents || !loader.is_no_yaml() || !Trim(text).starts_with('{')) return documents;
  const Result<Json> json = ParseJson(text);
  if (!json) return documents;
  const NodeSize size = DepthOf(*json, 1);
  if (size.depth > kMaxYamlDepth || size.nodes > kMaxYamlNodes) {
    return std::unexpected(YamlError{
        0, 0, fmt::format("nested deeper than {} levels, or too many values", kMaxYamlDepth)});
  }
  return std::vector<Node>{ToNode(*json)};
}

std::expected<Node, YamlError> ReadYaml(std::string_view text) {
  std::vector<Node> documents = TRY(ReadYamlDocuments(text));
  if (documents.empty()) return Node{};
  if (documents.size() > 1) {
    return std::unexpected(YamlError{documents[1].line, documents[1].column,
                                     "a second document begins here; one is expected"});
  }
  return std::move(documents[0]);
}

Json ToJson(const Node& node) {
  if (node.kind == Node::Kind::kMap) {
    JsonObject object;
    for (const NodeMember& member : node.members) object[member.key] = ToJson(member.value);
    return object;
  }
  if (node.kind == Node::Kind::kList) {
    JsonArray array;
    for (const Node& item : node.items) array.push_back(ToJson(item));
    return array;
  }
  return node.scalar;
}

Node ToNode(const Json& value) {
  Node node;
  node.kind = KindOf(value);
  if (const JsonArray* array = value.if_array()) {
    for (const Json& item : *array) node.items.push_back(ToNode(item));
  } else if (const JsonObject* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      node.members.push_back({std::string(key), 0, 0, ToNode(member)});
    }
  } else {
    node.scalar = value;
  }
  return node;
}

}  // namespace base
