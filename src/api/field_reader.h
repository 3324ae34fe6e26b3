// Takes typed values out of a tree of nodes and collects what is wrong with it.
//
// Reading never stops at an error: a wrong value is reported once and left at its default, so that
// one pass finds all. A value that is absent or null is no error here; who needs it says so with
// Require.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/decode.h"
#include "base/yaml.h"

namespace api {

// What a value is, for a message: "\"abc\"", "the number 3", "a list". Short and on one line.
std::string Shown(const base::Node& node);
// The text in quotes, on one line and cut to a length that fits a message.
std::string Quoted(std::string_view text);
// "a, b, c and 4 more": of many words, those that fit a message.
std::string Listed(const std::vector<std::string>& words);
// A key of ours below a path: "spec" and "replicas" make "spec.replicas".
std::string Below(const std::string& path, std::string_view key);
// A key of the author's: "metadata.labels[a.b/c]".
std::string BelowKey(const std::string& path, std::string_view key);
std::string BelowIndex(const std::string& path, size_t index);

class FieldReader {
 public:
  // A node, or the key of a member.
  struct Place {
    Place(const base::Node& node) : line(node.line), column(node.column) {}
    Place(const base::NodeMember& member) : line(member.line), column(member.column) {}
    int line;
    int column;
  };

  // Beyond the first 200 errors are only counted, and warnings left out: nobody reads them, and a
  // hostile text has many.
  void Fail(Place at, std::string path, std::string detail);
  // "unknown field, did you mean replicas?" or "unknown field, expected one of: a, b".
  void FailUnknown(Place at, const std::string& path, const std::string& what,
                   std::string_view word, const std::vector<std::string>& known);
  void Warn(const base::Node& at, const std::string& path, const std::string& text);
  // Reports a missing value, unless an unknown field was reported that most likely meant this one.
  void Require(const base::Node& map, const std::string& path, std::string detail);

  // True for a map, or a list. Null is neither, and no error.
  bool IsMap(const base::Node& node, const std::string& path);
  bool IsList(const base::Node& node, const std::string& path);
  // The same for an item of a list, where null is no value that is absent.
  bool IsMapItem(const base::Node& item, const std::string& path);
  // Reports every key that is not known.
  void KnownOnly(const base::Node& map, const std::string& path,
                 const std::vector<std::string>& known);

  // The values of nodes of the right kind; anything else but null is reported.
  std::optional<std::string> Text(const base::Node& node, const std::string& path);
  std::optional<bool> Flag(const base::Node& node, const std::string& path);
  std::optional<int64_t> Whole(const base::Node& node, const std::string& path,
                               int64_t most = std::numeric_limits<int64_t>::max());
  std::map<std::string, std::string> TextMap(const base::Node& node, const std::string& path);

  // The member of a map, or nullptr when it is absent or null.
  static const base::Node* Member(const base::Node& map, std::string_view key);

  // The same for a member of a map; `path` is the map's. What is absent or wrong leaves `out`
  // alone.
  void Text(const base::Node& map, const std::string& path, std::string_view key, std::string& out);
  void Flag(const base::Node& map, const std::string& path, std::string_view key, bool& out);
  template <typename T>
  void Whole(const base::Node& map, const std::string& path, std::string_view key, T& out) {
    using Number = decltype(NumberOf(out));
    const base::Node* member = Member(map, key);
    if (!member) return;
    if (auto value = Whole(*member, Below(path, key), std::numeric_limits<Number>::max())) {
      out = static_cast<Number>(*value);
    }
  }
  // One of the named values, by its exact name.
  template <typename T, size_t N>
  void Choice(const base::Node& map, const std::string& path, std::string_view key,
              const T (&values)[N], T& out) {
    const base::Node* member = Member(map, key);
    if (!member) return;
    const std::string here = Below(path, key);
    const auto text = Text(*member, here);
    if (!text) return;
    std::vector<std::string> names;
    for (T value : values) {
      if (*text == Name(value)) {
        out = value;
        return;
      }
      if (!Name(value).empty()) names.emplace_back(Name(value));
    }
    FailChoice(*member, here, *text, names);
  }

  std::vector<FieldError>& errors() { return errors_; }
  // All errors in the order of the text; the last tells how many there are beyond those.
  std::vector<FieldError> InOrder();
  std::vector<std::string>& warnings() { return warnings_; }

 private:
  template <typename T>
  static T NumberOf(const T&);
  template <typename T>
  static T NumberOf(const std::optional<T>&);

  void FailChoice(const base::Node& at, const std::string& path, const std::string& text,
                  const std::vector<std::string>& names);

  std::vector<FieldError> errors_;
  size_t untold_ = 0;
  std::vector<std::string> warnings_;
  std::set<std::string> meant_;  // paths that a reported unknown field most likely meant
};

}  // namespace api
