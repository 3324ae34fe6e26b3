// Tensors as gRPC clients send them, and the calls made of them, to our own values and back.
#pragma once

#include <string>
#include <vector>

#include "serve/signature.h"
#include "serve/status.h"
#include "tensor/tensor.h"

namespace tensorflow {
class TensorProto;
}
namespace tensorflow::serving {
class ClassificationResult;
class Input;
class PredictRequest;
class RegressionResult;
}  // namespace tensorflow::serving

namespace serve {

// At most this many bytes come out of one TensorProto: a few bytes can stand for a shape of any
// size.
inline constexpr int64_t kMostTensorBytes = int64_t{1} << 30;

Answer<tensor::Tensor> FromProto(const tensorflow::TensorProto& proto);
// With the values in the typed fields, as TensorFlow Serving answers: clients read float_val.
void ToProto(const tensor::Tensor& tensor, tensorflow::TensorProto& proto);

// The inputs of a Predict, by the signature's order; names that are missing or too many are
// refused.
Answer<std::vector<tensor::Tensor>> InputsOf(const tensorflow::serving::PredictRequest& request,
                                             const Signature& signature);

// The one input of a signature that takes examples. Refused if there is none of it.
Answer<std::vector<tensor::Tensor>> ExamplesOf(const tensorflow::serving::Input& input,
                                               const Signature& signature);
// Checks that a signature has the inputs and outputs of this method. As in TensorFlow Serving, the
// method that it names does not matter: TensorFlow 2 names predict always.
Answer<> CheckMethod(const Signature& signature, std::string_view method);

Answer<tensorflow::serving::ClassificationResult> Classification(
    const Signature& signature, const std::vector<tensor::Tensor>& outputs);
Answer<tensorflow::serving::RegressionResult> Regression(
    const Signature& signature, const std::vector<tensor::Tensor>& outputs);

}  // namespace serve
