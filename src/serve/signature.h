// What a SavedModel can be asked: its signatures, read from saved_model.pb without TensorFlow.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/status.h"
#include "tensor/frame.h"
#include "tensor/tensor.h"

namespace tensorflow {
class SignatureDef;
}
namespace tensorflow::serving {
class SignatureDefMap;
}

namespace serve {

// One input or output.
struct End {
  std::string name;    // in requests and answers
  std::string tensor;  // in the graph
  tensor::Type type = tensor::Type::kInvalid;
  std::optional<tensor::Shape> shape;  // nothing: any rank

  bool operator==(const End&) const = default;
};

struct Signature {
  std::string name;
  std::string method;        // "tensorflow/serving/predict"
  std::vector<End> inputs;   // by name
  std::vector<End> outputs;  // by name
  uint32_t index = 0;        // among those that the runtime knows
  // Why it cannot be asked; empty: it can.
  std::string trouble;
  // An operation in it with side effects (effects.h); empty: it has none.
  std::string effect;
  // Whether all ends have a first dimension of any size.
  bool has_rows = false;
  // Whether requests may share a batch; if they have rows and may not, why_alone says why.
  bool batches = false;
  std::string why_alone;

  const End* Output(std::string_view end) const;
};

inline constexpr std::string_view kClassifyMethod = "tensorflow/serving/classify";
inline constexpr std::string_view kRegressMethod = "tensorflow/serving/regress";

struct Signatures {
  std::map<std::string, Signature, std::less<>> by_name;
  std::shared_ptr<const tensorflow::serving::SignatureDefMap> definitions;  // as they were written
  std::string tensorflow_version;                                           // that wrote it

  // The empty name means serving_default.
  Answer<const Signature*> Find(std::string_view name) const;
  std::vector<tensor::SignatureNames> ForRuntime() const;
};

// Of the graph with the tag "serve".
base::Result<Signatures> ReadSignatures(const std::string& saved_model_pb);

// Checks that these inputs, by the order of the signature, are of its types, and returns how many
// rows they have if they can be part of a batch. The shapes of a signature are only a hint: whether
// others will do is TensorFlow's to decide. Such inputs run alone.
Answer<std::optional<int64_t>> CheckInputs(const Signature& signature,
                                           const std::vector<tensor::Tensor>& inputs);
// "image: DT_FLOAT (-1,28,28,1)"
std::string Describe(const End& end);
// "image: DT_FLOAT (-1,28,28,1), scale: DT_FLOAT ()"
std::string Describe(const std::vector<End>& ends);

}  // namespace serve
