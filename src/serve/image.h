// Pictures from files: PNG, and the IDX files that MNIST comes in.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "serve/signature.h"
#include "tensor/tensor.h"

namespace serve {

struct Image {
  int64_t width = 0, height = 0;
  std::string pixels;  // grey, 0 to 255, row by row

  bool operator==(const Image&) const = default;
};

// `index`: which picture of an IDX file.
base::Result<Image> DecodeImage(const std::string& bytes, int64_t index);

// The picture as the one row that an input takes: (1,H,W,1), (1,H,W,3), (1,H,W) or (1,H*W), each
// value divided by `scale`.
base::Result<tensor::Tensor> ToRow(const Image& image, const End& input, double scale);

}  // namespace serve
