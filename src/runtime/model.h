// One SavedModel in TensorFlow: loaded once, then run from any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/tensorflow.h"
#include "tensor/frame.h"

namespace runtime {

class Model {
 public:
  explicit Model(const TensorFlow& tensorflow) : tf_(tensorflow) {}

  // Once, before any Run. Lives until the process ends, as the model does.
  std::expected<void, tensor::Failure> Load(const tensor::Load& load);

  // The payload of the answer, encoded tensors.
  std::expected<std::string, tensor::Failure> Run(const tensor::Run& run) const;

 private:
  struct Ends {
    std::vector<TF_Output> inputs, outputs;
  };

  std::expected<std::vector<TF_Output>, tensor::Failure> Find(
      const std::vector<std::string>& names) const;
  TF_Tensor* Make(const tensor::TensorView& view) const;
  std::expected<tensor::Tensor, tensor::Failure> Take(const TF_Tensor* from) const;
  void Free(std::vector<TF_Tensor*>& tensors, bool ours) const;

  const TensorFlow& tf_;
  TF_Graph* graph_ = nullptr;
  TF_Session* session_ = nullptr;
  std::vector<Ends> signatures_;
};

}  // namespace runtime
