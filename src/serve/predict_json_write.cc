// The answers of predict_json.h.
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "base/base64.h"
#include "base/strings.h"
#include "serve/json_cursor.h"
#include "serve/predict_json.h"

namespace serve {
namespace {

using tensor::Tensor;
using tensor::Type;

template <typename Number>
void AppendReal(Number value, std::string& out) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-Infinity" : "Infinity";
  } else {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    const std::string_view written(text, static_cast<size_t>(end - text));
    out += written;
    if (written.find_first_of(".e") == std::string_view::npos) out += ".0";
  }
}

template <typename Number>
Number At(const Tensor& from, size_t i) {
  Number value;
  memcpy(&value, from.bytes.data() + i * sizeof value, sizeof value);
  return value;
}

template <typename Number>
void AppendWhole(const Tensor& from, size_t i, std::string& out) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, At<Number>(from, i)).ptr);
}

void AppendText(const std::string& text, bool as_bytes, std::string& out) {
  if (as_bytes || base::CleanUtf8(text) != text) {
    out += "{\"b64\": \"" + base::EncodeBase64(text) + "\"}";
  } else {
    AppendJsonString(text, out);
  }
}

void AppendElement(const Tensor& from, size_t i, bool as_bytes, std::string& out) {
  switch (from.type) {
    case Type::kFloat:
      return AppendReal(At<float>(from, i), out);
    case Type::kDouble:
      return AppendReal(At<double>(from, i), out);
    case Type::kHalf:
      return AppendReal(tensor::HalfToFloat(At<uint16_t>(from, i)), out);
    case Type::kBfloat16:
      return AppendReal(tensor::Bfloat16ToFloat(At<uint16_t>(from, i)), out);
    case Type::kInt8:
      return AppendWhole<int8_t>(from, i, out);
    case Type::kInt16:
      return AppendWhole<int16_t>(from, i, out);
    case Type::kInt32:
      return AppendWhole<int32_t>(from, i, out);
    case Type::kInt64:
      return AppendWhole<int64_t>(from, i, out);
    case Type::kUint8:
      return AppendWhole<uint8_t>(from, i, out);
    case Type::kUint16:
      return AppendWhole<uint16_t>(from, i, out);
    case Type::kUint32:
      return AppendWhole<uint32_t>(from, i, out);
    case Type::kUint64:
      return AppendWhole<uint64_t>(from, i, out);
    case Type::kBool:
      out += At<uint8_t>(from, i) ? "true" : "false";
      return;
    case Type::kString:
      return AppendText(from.strings[i], as_bytes, out);
    case Type::kInvalid:
      return;
  }
}

// What lies at a depth of a tensor, from its element `at` on.
void AppendPart(const Tensor& from, size_t depth, size_t& at, bool as_bytes, std::string& out) {
  if (depth == from.shape.size()) return AppendElement(from, at++, as_bytes, out);
  out += '[';
  for (int64_t i = 0; i < from.shape[depth]; ++i) {
    if (i > 0) out += ", ";
    AppendPart(from, depth + 1, at, as_bytes, out);
  }
  out += ']';
}

bool AsBytes(const Signature& signature, size_t i) {
  return signature.outputs[i].name.ends_with("_bytes");
}

}  // namespace

void AppendJsonNumber(float value, std::string& out) { AppendReal(value, out); }
void AppendJsonNumber(double value, std::string& out) { AppendReal(value, out); }

Answer<std::string> WritePredictions(const Signature& signature,
                                     const std::vector<Tensor>& outputs) {
  std::vector<size_t> at(outputs.size(), 0);
  int64_t rows = -1;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const tensor::Shape& shape = outputs[i].shape;
    if (shape.empty() || (rows >= 0 && shape[0] != rows))
      return BadRequest(
          fmt::format("output '{}' has shape {}: without a row for each instance; ask "
                      "with 'inputs' instead of 'instances'",
                      base::OneLine(signature.outputs[i].name), tensor::ToString(shape)));
    rows = shape[0];
  }
  std::string out = "{\n    \"predictions\": [";
  for (int64_t row = 0; row < rows; ++row) {
    if (row > 0) out += ", ";
    if (outputs.size() == 1) {
      AppendPart(outputs[0], 1, at[0], AsBytes(signature, 0), out);
      continue;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      out += i == 0 ? "{" : ", ";
      AppendJsonString(signature.outputs[i].name, out);
      out += ": ";
      AppendPart(outputs[i], 1, at[i], AsBytes(signature, i), out);
    }
    out += "}";
  }
  out += "]\n}";
  return out;
}

std::string WriteOutputs(const Signature& signature, const std::vector<Tensor>& outputs) {
  std::string out = "{\n    \"outputs\": ";
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs.size() > 1) {
      out += i == 0 ? "{" : ", ";
      AppendJsonString(signature.outputs[i].name, out);
      out += ": ";
    }
    size_t at = 0;
    AppendPart(outputs[i], 0, at, AsBytes(signature, i), out);
  }
  if (outputs.size() > 1) out += "}";
  out += "\n}";
  return out;
}

}  // namespace serve
