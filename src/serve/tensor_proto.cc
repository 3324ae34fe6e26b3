#include "serve/tensor_proto.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "base/strings.h"
#include "serving.pb.h"

namespace serve {
namespace {

using tensor::Tensor;
using tensor::Type;
using tensorflow::TensorProto;

// The values of a typed field, each as an Element; if there are fewer than elements the last one is
// repeated, and none at all means zeros, as TensorFlow reads them.
template <typename Element, typename Field>
Answer<std::string> FromField(const Field& field, int64_t elements) {
  if (field.size() > elements)
    return BadRequest(fmt::format("{} values for {} elements", field.size(), elements));
  std::string out;
  out.resize(static_cast<size_t>(elements) * sizeof(Element));
  auto* to = out.data();
  Element value{};
  for (int64_t i = 0; i < elements; ++i, to += sizeof value) {
    if (i < field.size()) value = static_cast<Element>(field.Get(static_cast<int>(i)));
    memcpy(to, &value, sizeof value);
  }
  return out;
}

Answer<std::string> Values(const TensorProto& proto, Type type, int64_t elements) {
  switch (type) {
    case Type::kFloat:
      return FromField<float>(proto.float_val(), elements);
    case Type::kDouble:
      return FromField<double>(proto.double_val(), elements);
    case Type::kInt32:
      return FromField<int32_t>(proto.int_val(), elements);
    case Type::kInt16:
      return FromField<int16_t>(proto.int_val(), elements);
    case Type::kInt8:
      return FromField<int8_t>(proto.int_val(), elements);
    case Type::kUint8:
      return FromField<uint8_t>(proto.int_val(), elements);
    case Type::kUint16:
      return FromField<uint16_t>(proto.int_val(), elements);
    case Type::kInt64:
      return FromField<int64_t>(proto.int64_val(), elements);
    case Type::kBool:
      return FromField<uint8_t>(proto.bool_val(), elements);
    case Type::kHalf:
    case Type::kBfloat16:
      return FromField<uint16_t>(proto.half_val(), elements);
    case Type::kUint32:
      return FromField<uint32_t>(proto.uint32_val(), elements);
    case Type::kUint64:
      return FromField<uint64_t>(proto.uint64_val(), elements);
    default:
      return BadRequest(fmt::format("tensors of type {} are not served", tensor::NameOf(type)));
  }
}

Answer<std::vector<std::string>> Strings(const TensorProto& proto, int64_t elements) {
  if (!proto.tensor_content().empty())
    return BadRequest("strings belong into string_val, not into tensor_content");
  if (proto.string_val_size() > elements)
    return BadRequest(fmt::format("{} values for {} elements", proto.string_val_size(), elements));
  std::vector<std::string> out(proto.string_val().begin(), proto.string_val().end());
  int64_t bytes = 0;
  const std::string last = out.empty() ? "" : out.back();
  for (const std::string& text : out) bytes += static_cast<int64_t>(text.size());
  const int64_t more = elements - static_cast<int64_t>(out.size());
  if (more * static_cast<int64_t>(last.size() + 1) + bytes > kMostTensorBytes)
    return Refused(Code::kResourceExhausted, "the tensor is too large");
  out.resize(static_cast<size_t>(elements), last);
  return out;
}

template <typename Element, typename Field>
void ToField(const Tensor& from, Field* field) {
  const size_t count = from.bytes.size() / sizeof(Element);
  field->Reserve(static_cast<int>(count));
  for (size_t i = 0; i < count; ++i) {
    Element value;
    memcpy(&value, from.bytes.data() + i * sizeof value, sizeof value);
    field->AddAlreadyReserved(value);
  }
}

// The float at a place of a tensor of floats or doubles.
float FloatAt(const Tensor& from, size_t i) {
  if (from.type == Type::kDouble) {
    double value;
    memcpy(&value, from.bytes.data() + i * sizeof value, sizeof value);
    return static_cast<float>(value);
  }
  float value;
  memcpy(&value, from.bytes.data() + i * sizeof value, sizeof value);
  return value;
}

const Tensor* OutputOf(const Signature& signature, const std::vector<Tensor>& outputs,
                       std::string_view name) {
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    if (signature.outputs[i].name == name) return &outputs[i];
  }
  return nullptr;
}

bool IsFloats(const Tensor* each) {
  return each && (each->type == Type::kFloat || each->type == Type::kDouble);
}

}  // namespace

Answer<Tensor> FromProto(const TensorProto& proto) {
  Tensor out{.type = static_cast<Type>(proto.dtype())};
  if (!tensor::IsServed(out.type))
    return BadRequest(fmt::format("tensors of type {} are not served", tensor::NameOf(out.type)));
  if (proto.tensor_shape().unknown_rank() ||
      proto.tensor_shape().dim_size() > static_cast<int>(tensor::kMostRank))
    return BadRequest("a tensor of no shape");
  for (const auto& dim : proto.tensor_shape().dim()) out.shape.push_back(dim.size());
  const auto elements = tensor::ElementsOf(out.shape);
  if (!elements)
    return BadRequest(fmt::format("a tensor of shape {}", tensor::ToString(out.shape)));
  if (out.type == Type::kString) {
    if (*elements * 32 > kMostTensorBytes)
      return Refused(Code::kResourceExhausted, "the tensor is too large");
    out.strings = TRY(Strings(proto, *elements));
    return out;
  }
  const int64_t bytes = *elements * static_cast<int64_t>(tensor::SizeOf(out.type));
  if (bytes > kMostTensorBytes) return Refused(Code::kResourceExhausted, "the tensor is too large");
  if (proto.tensor_content().empty()) {
    out.bytes = TRY(Values(proto, out.type, *elements));
    return out;
  }
  if (static_cast<int64_t>(proto.tensor_content().size()) != bytes)
    return BadRequest(fmt::format("tensor_content has {} bytes; {} of shape {} has {}",
                                  proto.tensor_content().size(), tensor::NameOf(out.type),
                                  tensor::ToString(out.shape), bytes));
  out.bytes = proto.tensor_content();
  if (out.type == Type::kBool) {
    for (char& value : out.bytes) value = value != 0;
  }
  return out;
}

void ToProto(const Tensor& from, TensorProto& proto) {
  proto.set_dtype(static_cast<tensorflow::DataType>(from.type));
  for (const int64_t size : from.shape) proto.mutable_tensor_shape()->add_dim()->set_size(size);
  proto.mutable_tensor_shape();
  switch (from.type) {
    case Type::kFloat:
      return ToField<float>(from, proto.mutable_float_val());
    case Type::kDouble:
      return ToField<double>(from, proto.mutable_double_val());
    case Type::kInt32:
      return ToField<int32_t>(from, proto.mutable_int_val());
    case Type::kInt16:
      return ToField<int16_t>(from, proto.mutable_int_val());
    case Type::kInt8:
      return ToField<int8_t>(from, proto.mutable_int_val());
    case Type::kUint8:
      return ToField<uint8_t>(from, proto.mutable_int_val());
    case Type::kUint16:
      return ToField<uint16_t>(from, proto.mutable_int_val());
    case Type::kInt64:
      return ToField<int64_t>(from, proto.mutable_int64_val());
    case Type::kBool:
      return ToField<bool>(from, proto.mutable_bool_val());
    case Type::kHalf:
    case Type::kBfloat16:
      return ToField<uint16_t>(from, proto.mutable_half_val());
    case Type::kUint32:
      return ToField<uint32_t>(from, proto.mutable_uint32_val());
    case Type::kUint64:
      return ToField<uint64_t>(from, proto.mutable_uint64_val());
    case Type::kString:
      for (const std::string& text : from.strings) proto.add_string_val(text);
      return;
    case Type::kInvalid:
      return;
  }
}

Answer<std::vector<Tensor>> InputsOf(const tensorflow::serving::PredictRequest& request,
                                     const Signature& signature) {
  std::vector<Tensor> out;
  for (const End& end : signature.inputs) {
    const auto found = request.inputs().find(end.name);
    if (found == request.inputs().end())
      return BadRequest(fmt::format("input '{}' is missing; signature '{}' takes {}",
                                    base::OneLine(end.name), base::OneLine(signature.name),
                                    Describe(signature.inputs)));
    auto value = FromProto(found->second);
    if (!value)
      return Refused(value.error().code,
                     fmt::format("input '{}': {}", base::OneLine(end.name), value.error().text));
    out.push_back(std::move(*value));
  }
  for (const auto& [name, value] : request.inputs()) {
    if (std::ranges::find(signature.inputs, name, &End::name) == signature.inputs.end())
      return BadRequest(fmt::format("no input '{}'; signature '{}' takes {}", base::OneLine(name),
                                    base::OneLine(signature.name), Describe(signature.inputs)));
  }
  return out;
}

Answer<> CheckMethod(const Signature& signature, std::string_view method) {
  const std::string name = base::OneLine(signature.name);
  const auto refused = [&](std::string_view what) {
    return Refused(Code::kFailedPrecondition,
                   fmt::format("signature '{}' is not for {}: {}", name, method, what));
  };
  if (signature.inputs.size() != 1 || signature.inputs[0].name != "inputs")
    return refused("it must have one input, 'inputs'");
  if (method == kRegressMethod) {
    if (signature.outputs.size() != 1 || !signature.Output("outputs"))
      return refused("it must have one output, 'outputs'");
  } else if (signature.outputs.size() > 2 ||
             (!signature.Output("classes") && !signature.Output("scores"))) {
    return refused("it must have the outputs 'classes' or 'scores', or both");
  }
  return {};
}

Answer<std::vector<Tensor>> ExamplesOf(const tensorflow::serving::Input& input,
                                       const Signature& signature) {
  if (signature.inputs.size() != 1 || signature.inputs[0].type != Type::kString)
    return BadRequest(fmt::format("signature '{}' takes {}, and no examples",
                                  base::OneLine(signature.name), Describe(signature.inputs)));
  Tensor out{.type = Type::kString};
  const auto add = [&](const tensorflow::Example& example) {
    out.strings.push_back(example.SerializeAsString());
  };
  if (input.has_example_list_with_context()) {
    // What all have in common comes first; an example's own features win.
    const auto& with = input.example_list_with_context();
    for (const tensorflow::Example& each : with.examples()) {
      tensorflow::Example whole = with.context();
      for (const auto& [name, feature] : each.features().feature())
        (*whole.mutable_features()->mutable_feature())[name] = feature;
      add(whole);
    }
  } else {
    for (const tensorflow::Example& each : input.example_list().examples()) add(each);
  }
  if (out.strings.empty()) return BadRequest("no examples");
  out.shape = {static_cast<int64_t>(out.strings.size())};
  return std::vector<Tensor>{std::move(out)};
}

Answer<tensorflow::serving::ClassificationResult> Classification(
    const Signature& signature, const std::vector<Tensor>& outputs) {
  const Tensor* classes = OutputOf(signature, outputs, "classes");
  const Tensor* scores = OutputOf(signature, outputs, "scores");
  if (!classes && !scores)
    return BadRequest(fmt::format("signature '{}' gives neither classes nor scores",
                                  base::OneLine(signature.name)));
  if ((classes && (classes->type != Type::kString || classes->shape.size() != 2)) ||
      (scores && (!IsFloats(scores) || scores->shape.size() != 2)) ||
      (classes && scores && classes->shape != scores->shape))
    return Refused(Code::kInternal, "classes and scores of the model do not fit each other");
  const tensor::Shape& shape = classes ? classes->shape : scores->shape;
  tensorflow::serving::ClassificationResult out;
  for (int64_t row = 0; row < shape[0]; ++row) {
    auto* classification = out.add_classifications();
    for (int64_t column = 0; column < shape[1]; ++column) {
      const auto i = static_cast<size_t>(row * shape[1] + column);
      auto* each = classification->add_classes();
      if (classes) each->set_label(classes->strings[i]);
      if (scores) each->set_score(FloatAt(*scores, i));
    }
  }
  return out;
}

Answer<tensorflow::serving::RegressionResult> Regression(const Signature& signature,
                                                         const std::vector<Tensor>& outputs) {
  const Tensor* values = OutputOf(signature, outputs, "outputs");
  if (!IsFloats(values))
    return BadRequest(fmt::format("signature '{}' gives no 'outputs' of type DT_FLOAT",
                                  base::OneLine(signature.name)));
  if (values->shape.empty() || values->shape.size() > 2 ||
      (values->shape.size() == 2 && values->shape[1] != 1))
    return BadRequest(fmt::format("'outputs' has shape {}; one value for each example is expected",
                                  tensor::ToString(values->shape)));
  tensorflow::serving::RegressionResult out;
  const auto count = static_cast<size_t>(tensor::ElementsOf(values->shape).value_or(0));
  for (size_t i = 0; i < count; ++i) out.add_regressions()->set_value(FloatAt(*values, i));
  return out;
}

}  // namespace serve
