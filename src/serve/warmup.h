// The first requests of a model, before anybody else's: what TensorFlow puts off until the first
// run is then done. From assets.extra/tf_serving_warmup_requests, as TensorFlow Serving reads it,
// or else zeros for each signature that has no side effects.
#pragma once

#include <string>
#include <vector>

#include "serve/signature.h"
#include "tensor/tensor.h"

namespace serve {

struct WarmupRun {
  const Signature* signature = nullptr;
  std::vector<tensor::Tensor> inputs;
};

struct Warmup {
  bool recorded = false;  // by the model's maker
  std::vector<WarmupRun> runs;
};

Warmup WarmupOf(const Signatures& signatures, const std::string& directory);

// A row of zeros, or of empty strings.
std::vector<tensor::Tensor> Zeros(const Signature& signature);

}  // namespace serve
