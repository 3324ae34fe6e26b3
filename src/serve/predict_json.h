// A predict request in JSON to tensors, and tensors to its answer; TensorFlow Serving's two forms.
// Pure; the fuzz target is predict_json_fuzz. (Answers: predict_json_write.cc.)
//
//   {"instances": [row, row]}           {"predictions": [row, row]}
//   {"inputs": value or {name: value}}  {"outputs": value or {name: value}}
//
// A row is a value, if the signature has one input, or {name: value}. Values of strings may be
// {"b64": "…"}. In answers an output whose name ends in _bytes is written so, as is any string that
// is not UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/signature.h"
#include "serve/status.h"
#include "tensor/tensor.h"

namespace serve {

struct PredictBody {
  std::string signature_name;
  bool rows = false;       // "instances"
  std::string_view value;  // of "instances" or "inputs", in the body
};

Answer<PredictBody> ReadPredictBody(std::string_view body);
// The same at less cost, as long as the values come last: if they do not, ReadInputs refuses what
// is taken for them.
std::optional<PredictBody> GuessPredictBody(std::string_view body);
Answer<std::vector<tensor::Tensor>> ReadInputs(const PredictBody& body, const Signature& signature);
// The same without the short cut through lists of numbers, for tests that compare both.
Answer<std::vector<tensor::Tensor>> ReadInputsByValue(const PredictBody& body,
                                                      const Signature& signature);

// By the signature's order of outputs. Rows that do not agree, or are not there, are refused.
Answer<std::string> WritePredictions(const Signature& signature,
                                     const std::vector<tensor::Tensor>& outputs);
std::string WriteOutputs(const Signature& signature, const std::vector<tensor::Tensor>& outputs);

// The shortest text that means this number, with a point or an exponent in it.
void AppendJsonNumber(float value, std::string& out);
void AppendJsonNumber(double value, std::string& out);

}  // namespace serve
