// Checks, by running it, that a signature computes each row of its outputs from the same row of its
// inputs and from nothing else, so that requests can share a batch. Pure but for the runs.
//
// It draws random inputs and compares rows that run alone, together, in another order, beside other
// rows, and in batches of other sizes. This is evidence and not a proof in the mathematical sense:
// a model that mixes rows only for inputs that are never drawn is not found out. Whatever is
// doubtful (strings, inputs that the model refuses, outputs that do not depend on the inputs, too
// little time) counts as a failure. The signature must have no side effects (effects.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "serve/batcher.h"
#include "serve/signature.h"
#include "serve/status.h"
#include "tensor/tensor.h"

namespace serve {

using RunOnce = std::function<Answer<std::vector<tensor::Tensor>>(std::vector<tensor::Tensor>)>;

// Returns why requests must not share a batch; empty: they may. `rows` is the size of the largest
// batch. Stops with a reason when `until` has passed.
std::string WhyNotRowWise(const Signature& signature, int64_t rows, const RunOnce& run,
                          Steady::time_point until);

}  // namespace serve
