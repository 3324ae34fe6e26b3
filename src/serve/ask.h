// One question to a model, whoever asks it: finds the version and the signature, checks the inputs,
// and brings the outputs back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/models.h"

namespace serve {

struct Target {
  std::string model;
  std::optional<int64_t> version;
  std::string label;
  std::string signature;  // empty: serving_default
};

struct Asked {
  std::shared_ptr<Servable> servable;
  const Signature* signature = nullptr;  // the servable's
};

struct Answered {
  Asked by;
  std::vector<tensor::Tensor> outputs;  // by the signature's order
};

Answer<Asked> FindTarget(const Models& models, const Target& target);

// Counts a request that was refused before it came to Ask.
void CountRefused(const Models& models, Counters& counters, const std::string& model, Code code);

// `done` is called once, on another thread or, when it is refused, on this one. `caller.gone` is not
// called after it.
void Ask(Asked asked, std::vector<tensor::Tensor> inputs, Caller caller,
         std::move_only_function<void(Answer<Answered>)> done);

}  // namespace serve
