// A SavedModel carries the definitions of its operations (stripped_op_list). TensorFlow marks those
// stateful that it must not repeat, drop or reorder: everything that writes, and random generators,
// but also what only reads. The readers are listed here; all other stateful operations count as
// writers, and so do those that take a reference to a variable (TensorFlow 1's Assign is not marked).
#include "serve/effects.h"

#include <vector>

#include "serving.pb.h"

namespace serve {
namespace {

const std::set<std::string_view> kReaders = {
    "Assert",          "Case",           "DisableCopyOnRead", "HashTable",
    "HashTableV2",     "If",             "LookupTableFind",   "LookupTableFindV2",
    "LookupTableSize", "LookupTableSizeV2", "MutableHashTable", "MutableHashTableV2",
    "ReadVariableOp",  "ResourceGather", "ResourceGatherNd",  "StatefulPartitionedCall",
    "VarHandleOp",     "VarIsInitializedOp", "Variable",      "VariableShape",
    "VariableV2",      "While",
};

// The node of "node:1" or "^node".
std::string_view NodeOf(std::string_view tensor) {
  if (tensor.starts_with('^')) tensor.remove_prefix(1);
  return tensor.substr(0, tensor.find(':'));
}

}  // namespace

Effects::Effects(const tensorflow::MetaGraphDef& graph) {
  for (const auto& node : graph.graph_def().node()) nodes_.emplace(node.name(), &node);
  for (const auto& function : graph.graph_def().library().function())
    functions_.emplace(function.signature().name(), &function);
  for (const auto& op : graph.meta_info_def().stripped_op_list().op()) ops_.emplace(op.name(), &op);
}

bool Effects::HasEffect(const tensorflow::NodeDef& node) const {
  if (kReaders.contains(node.op()) || functions_.contains(node.op())) return false;
  const auto op = ops_.find(node.op());
  if (op == ops_.end() || op->second->is_stateful()) return true;
  for (const auto& input : op->second->input_arg()) {
    if (input.is_ref() || input.type() == tensorflow::DT_RESOURCE) return true;
  }
  return false;
}

std::string Effects::InNode(const tensorflow::NodeDef& node,
                            std::set<std::string_view>& visited) const {
  if (HasEffect(node)) return node.op();
  std::string found = InFunction(node.op(), visited);
  for (const auto& [name, value] : node.attr()) {
    if (found.empty()) found = InFunction(value.func().name(), visited);
    for (const auto& function : value.list().func()) {
      if (found.empty()) found = InFunction(function.name(), visited);
    }
  }
  return found;
}

// All operations of a function count, whether its outputs need them or not: TensorFlow runs those
// with effects in any case.
std::string Effects::InFunction(std::string_view name, std::set<std::string_view>& visited) const {
  const auto function = functions_.find(name);
  if (function == functions_.end() || !visited.insert(function->first).second) return "";
  for (const auto& node : function->second->node_def()) {
    if (std::string found = InNode(node, visited); !found.empty()) return found;
  }
  return "";
}

std::string Effects::Of(const tensorflow::SignatureDef& signature) const {
  std::set<std::string_view> visited_nodes, visited_functions;
  std::vector<std::string_view> next;
  for (const auto& [name, info] : signature.outputs()) next.push_back(NodeOf(info.name()));
  while (!next.empty()) {
    const auto node = nodes_.find(next.back());
    next.pop_back();
    if (node == nodes_.end()) return "an operation that the graph does not have";
    if (!visited_nodes.insert(node->first).second) continue;
    if (std::string found = InNode(*node->second, visited_functions); !found.empty()) return found;
    for (const std::string& input : node->second->input()) next.push_back(NodeOf(input));
  }
  return "";
}

}  // namespace serve
