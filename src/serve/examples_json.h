// Classify and regress in JSON: examples in, labels with scores or values out.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "serve/status.h"

namespace tensorflow::serving {
class ClassificationResult;
class Input;
class RegressionResult;
}  // namespace tensorflow::serving

namespace serve {

struct ExamplesBody {
  std::string signature_name;
  std::shared_ptr<tensorflow::serving::Input> input;
};

// {"signature_name": …, "context": {name: value}, "examples": [{name: value or list}, …]}
Answer<ExamplesBody> ReadExamplesBody(std::string_view body);

std::string WriteResult(const tensorflow::serving::ClassificationResult& result);
std::string WriteResult(const tensorflow::serving::RegressionResult& result);

}  // namespace serve
