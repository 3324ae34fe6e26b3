#include "serve/signature.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
#include "serve/effects.h"
#include "serving.pb.h"

namespace serve {
namespace {

using base::Result;
using tensor::Type;

constexpr size_t kMostNames = 12;  // in a message

// DT_FLOAT_REF is DT_FLOAT plus this: a variable of TensorFlow 1, whose value is what a run returns.
constexpr int kReference = 100;

std::optional<End> EndOf(const std::string& name, const tensorflow::TensorInfo& info) {
  if (info.encoding_case() != tensorflow::TensorInfo::kName) return std::nullopt;
  const int type = info.dtype() > kReference ? info.dtype() - kReference : info.dtype();
  End end{.name = name, .tensor = info.name(), .type = static_cast<Type>(type)};
  if (info.has_tensor_shape() && !info.tensor_shape().unknown_rank()) {
    end.shape.emplace();
    for (const auto& dim : info.tensor_shape().dim()) end.shape->push_back(dim.size());
  }
  return end;
}

bool RowsAreFree(const std::vector<End>& ends) {
  return !ends.empty() && std::ranges::all_of(ends, [](const End& end) {
    return end.shape && !end.shape->empty() && end.shape->front() == -1;
  });
}

Signature Read(const std::string& name, const tensorflow::SignatureDef& definition) {
  Signature out{.name = name, .method = definition.method_name()};
  const auto add = [&](const auto& from, std::vector<End>& to) {
    for (const auto& [key, info] : from) {
      if (auto end = EndOf(key, info)) {
        if (!tensor::IsServed(end->type))
          out.trouble = fmt::format("'{}' is of type {}, which is not served", key,
                                    tensor::NameOf(end->type));
        to.push_back(std::move(*end));
      } else {
        out.trouble = fmt::format("'{}' is no dense tensor", key);
      }
    }
    std::ranges::sort(to, {}, &End::name);
  };
  add(definition.inputs(), out.inputs);
  add(definition.outputs(), out.outputs);
  if (out.outputs.empty() && out.trouble.empty()) out.trouble = "it has no outputs";
  out.has_rows = RowsAreFree(out.inputs) && RowsAreFree(out.outputs);
  return out;
}

bool Fits(const tensor::Shape& shape, const tensor::Shape& wanted) {
  return std::ranges::equal(shape, wanted,
                            [](int64_t have, int64_t want) { return want == -1 || have == want; });
}

}  // namespace

const End* Signature::Output(std::string_view end) const {
  const auto found = std::ranges::find(outputs, end, &End::name);
  return found == outputs.end() ? nullptr : &*found;
}

Answer<const Signature*> Signatures::Find(std::string_view name) const {
  const auto found = by_name.find(name.empty() ? "serving_default" : name);
  if (found == by_name.end()) {
    std::vector<std::string> names;
    for (const auto& [each, signature] : by_name) {
      if (signature.trouble.empty() && names.size() < kMostNames) names.push_back(each);
    }
    return Refused(Code::kInvalidArgument,
                   fmt::format("no signature '{}' in this model; it has: {}",
                               base::OneLine(name.empty() ? "serving_default" : name),
                               base::OneLine(base::Join(names, ", "), 400)));
  }
  if (!found->second.trouble.empty())
    return Refused(Code::kUnimplemented, fmt::format("signature '{}' cannot be served: {}",
                                                     found->first, found->second.trouble));
  return &found->second;
}

std::vector<tensor::SignatureNames> Signatures::ForRuntime() const {
  std::vector<tensor::SignatureNames> out;
  for (const auto& [name, signature] : by_name) {
    if (!signature.trouble.empty()) continue;
    if (out.size() <= signature.index) out.resize(signature.index + 1);
    for (const End& end : signature.inputs) out[signature.index].inputs.push_back(end.tensor);
    for (const End& end : signature.outputs) out[signature.index].outputs.push_back(end.tensor);
  }
  return out;
}

Result<Signatures> ReadSignatures(const std::string& saved_model_pb) {
  tensorflow::SavedModel model;
  if (!model.ParseFromString(saved_model_pb))
    return base::Invalid("saved_model.pb is no SavedModel, or not all of one");
  for (tensorflow::MetaGraphDef& graph : *model.mutable_meta_graphs()) {
    if (!std::ranges::count(graph.meta_info_def().tags(), "serve")) continue;
    Signatures out{.tensorflow_version = graph.meta_info_def().tensorflow_version()};
    auto definitions = std::make_shared<tensorflow::serving::SignatureDefMap>();
    uint32_t index = 0;
    const Effects effects(graph);
    for (auto& [name, definition] : *graph.mutable_signature_def()) {
      if (name.starts_with("__saved_model_init_op")) continue;
      out.by_name.emplace(name, Read(name, definition)).first->second.effect = effects.Of(definition);
      (*definitions->mutable_signature_def())[name].Swap(&definition);
    }
    for (auto& [name, signature] : out.by_name) {
      if (signature.trouble.empty()) signature.index = index++;
    }
    if (index == 0) return base::Invalid("the SavedModel has no signature that can be served");
    out.definitions = std::move(definitions);
    return out;
  }
  return base::Invalid("the SavedModel has no graph with the tag 'serve'");
}

std::string Describe(const End& end) {
  return fmt::format("{}: {} {}", base::OneLine(end.name), tensor::NameOf(end.type),
                     end.shape ? tensor::ToString(*end.shape) : "of any shape");
}

std::string Describe(const std::vector<End>& ends) {
  std::vector<std::string> out;
  for (const End& end : ends) {
    if (out.size() == kMostNames) {
      out.push_back("…");
      break;
    }
    out.push_back(Describe(end));
  }
  return base::Join(out, ", ");
}

Answer<std::optional<int64_t>> CheckInputs(const Signature& signature,
                                           const std::vector<tensor::Tensor>& inputs) {
  CHECK(inputs.size() == signature.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const End& end = signature.inputs[i];
    if (inputs[i].type != end.type)
      return BadRequest(fmt::format("input '{}' is {}; signature '{}' takes {}",
                                    base::OneLine(end.name), tensor::NameOf(inputs[i].type),
                                    base::OneLine(signature.name), Describe(end)));
  }
  if (!signature.batches) return std::nullopt;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!Fits(inputs[i].shape, *signature.inputs[i].shape)) return std::nullopt;
  }
  const int64_t rows = inputs.front().shape.front();
  const bool same = std::ranges::all_of(
      inputs, [&](const tensor::Tensor& input) { return input.shape.front() == rows; });
  // An empty batch, or rows that do not agree, are the model's to judge, alone.
  if (!same || rows == 0) return std::nullopt;
  return rows;
}

}  // namespace serve
