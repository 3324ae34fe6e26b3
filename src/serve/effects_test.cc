#include "serve/effects.h"

#include <gtest/gtest.h>

#include "serving.pb.h"

namespace serve {
namespace {

// A graph x -> StatefulPartitionedCall(f) -> y, where the function f has these operations.
class Graph {
 public:
  explicit Graph(const std::vector<std::string>& in_function) {
    Describe("Placeholder", false);
    Describe("MatMul", false);
    Describe("ReadVariableOp", true);
    Describe("VarHandleOp", true);
    Describe("StatefulPartitionedCall", true);
    Describe("AssignAddVariableOp", true);
    Describe("RandomUniform", true);
    Describe("Assign", false).add_input_arg()->set_is_ref(true);
    Add("x", "Placeholder", {});
    Add("variable", "VarHandleOp", {});
    auto& call = Add("call", "StatefulPartitionedCall", {"x", "variable"});
    (*call.mutable_attr())["f"].mutable_func()->set_name("outer");
    Add("writer", "AssignAddVariableOp", {"variable"});  // no output needs it
    auto* outer = graph.mutable_graph_def()->mutable_library()->add_function();
    outer->mutable_signature()->set_name("outer");
    auto* inner_call = outer->add_node_def();
    inner_call->set_op("StatefulPartitionedCall");
    (*inner_call->mutable_attr())["f"].mutable_func()->set_name("inner");
    auto* inner = graph.mutable_graph_def()->mutable_library()->add_function();
    inner->mutable_signature()->set_name("inner");
    for (const std::string& op : in_function) inner->add_node_def()->set_op(op);
  }

  tensorflow::OpDef& Describe(const std::string& op, bool stateful) {
    auto* out = graph.mutable_meta_info_def()->mutable_stripped_op_list()->add_op();
    out->set_name(op);
    out->set_is_stateful(stateful);
    return *out;
  }
  tensorflow::NodeDef& Add(const std::string& name, const std::string& op,
                           const std::vector<std::string>& inputs) {
    auto* out = graph.mutable_graph_def()->add_node();
    out->set_name(name);
    out->set_op(op);
    for (const std::string& input : inputs) out->add_input(input);
    return *out;
  }
  std::string EffectOf(const std::string& tensor) const {
    tensorflow::SignatureDef signature;
    (*signature.mutable_outputs())["y"].set_name(tensor);
    return Effects(graph).Of(signature);
  }

  tensorflow::MetaGraphDef graph;
};

TEST(Effects, ASignatureThatOnlyReadsVariablesHasNone) {
  EXPECT_EQ(Graph({"ReadVariableOp", "MatMul"}).EffectOf("call:0"), "");
}

TEST(Effects, AWriteInAFunctionThatAFunctionCallsIsFound) {
  EXPECT_EQ(Graph({"MatMul", "AssignAddVariableOp"}).EffectOf("call:0"), "AssignAddVariableOp");
}

TEST(Effects, ARandomGeneratorIsAnEffect) {
  EXPECT_EQ(Graph({"RandomUniform"}).EffectOf("call:0"), "RandomUniform");
}

TEST(Effects, AnOperationThatIsNotDescribedIsAnEffect) {
  EXPECT_EQ(Graph({"MyCustomOp"}).EffectOf("call:0"), "MyCustomOp");
  EXPECT_NE(Graph({}).EffectOf("nowhere:0"), "");
}

TEST(Effects, AWriteThroughAReferenceIsAnEffectThoughTensorFlowDoesNotMarkIt) {
  Graph graph({});
  graph.Add("assign", "Assign", {"variable", "x"});
  graph.Add("y", "MatMul", {"x", "^assign"});
  EXPECT_EQ(graph.EffectOf("y:0"), "Assign");
}

TEST(Effects, FunctionsThatCallEachOtherDoNotLoop) {
  Graph graph({"MatMul"});
  auto* call = graph.graph.mutable_graph_def()->mutable_library()->mutable_function(1)->add_node_def();
  call->set_op("outer");
  EXPECT_EQ(graph.EffectOf("call:0"), "");
}

}  // namespace
}  // namespace serve
