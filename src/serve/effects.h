// Finds out, from the graph alone, whether running a signature can change anything: a variable, a
// table, a random generator, a file. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace tensorflow {
class FunctionDef;
class MetaGraphDef;
class NodeDef;
class OpDef;
class SignatureDef;
}  // namespace tensorflow

namespace serve {

// An index of one graph, which must outlive it.
class Effects {
 public:
  explicit Effects(const tensorflow::MetaGraphDef& graph);

  // Returns the name of an operation that a run of the signature reaches and that may have an
  // effect beyond its outputs. Empty: there is none. An operation that the SavedModel does not
  // describe counts as one that has.
  std::string Of(const tensorflow::SignatureDef& signature) const;

 private:
  bool HasEffect(const tensorflow::NodeDef& node) const;
  std::string InFunction(std::string_view name, std::set<std::string_view>& visited) const;
  std::string InNode(const tensorflow::NodeDef& node, std::set<std::string_view>& visited) const;

  std::map<std::string_view, const tensorflow::NodeDef*> nodes_;
  std::map<std::string_view, const tensorflow::FunctionDef*> functions_;
  std::map<std::string_view, const tensorflow::OpDef*> ops_;
};

}  // namespace serve
