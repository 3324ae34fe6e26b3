// References to parameters in the objects of a template, replaced by values.
//
// As `oc process`: ${NAME} anywhere in a text, or in a key, becomes the parameter's text; a text
// that is ${{NAME}} and nothing else becomes the JSON value that the parameter's text is, or the
// text itself when it is no JSON. What names no parameter stays as it is, with a warning: a shell
// has variables of that form.
//
// A value is put into the tree, not into the text of the manifest: with quotes, line ends or
// colons in it, it is still one value. It is not searched for references itself. Everything keeps
// the position of what it replaces. All that one Substitution puts in is bounded as a manifest is
// (base/yaml.h); beyond that it stops, with one error.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "api/field_reader.h"

namespace api {

using Values = std::map<std::string, std::string, std::less<>>;

// What a parameter's name is made of.
inline constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

// Whether a text has a ${NAME} in it.
bool HasReference(std::string_view text);

class Substitution {
 public:
  explicit Substitution(FieldReader& reader) : reader_(reader) {}

  void Apply(base::Node& tree, const Values& values) { Visit(tree, values, 1); }

  // Whether so much more may be put in, by whoever does it; false: an error was told.
  bool MayAdd(const base::Node& at, size_t nodes, size_t bytes);

 private:
  void Visit(base::Node& node, const Values& values, int depth);
  void VisitKeys(base::Node& map, const Values& values);
  void VisitText(base::Node& node, const Values& values, int depth);
  std::string Replaced(std::string_view text, const Values& values, const base::Node& at);
  void PutValue(base::Node& node, const std::string& value, int depth);

  void TellOnce(const base::Node& at, const std::string& reference, const std::string& text);

  FieldReader& reader_;
  size_t nodes_ = 0;  // put in so far
  size_t bytes_ = 0;
  bool is_full_ = false;
  std::set<std::string> told_;  // references that were warned of
};

}  // namespace api
