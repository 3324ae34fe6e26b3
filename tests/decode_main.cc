// What the decoder says about manifests: one JSON object a line in, one a line out, with `errors`
// ("path: detail") and, when there are none, the `job` as v1. For tests that compare it with what
// others say (tests/cluster/test_crd_agrees.py).
#include <iostream>
#include <string>

#include "api/decode.h"
#include "base/json.h"

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const api::Decoded decoded = api::DecodeJob(line);
    base::JsonArray errors;
    for (const api::FieldError& error : decoded.errors) {
      errors.emplace_back(error.path + ": " + error.detail);
    }
    base::JsonObject out{{"errors", std::move(errors)}};
    if (decoded.errors.empty()) out["job"] = api::EncodeJob(decoded.job);
    std::cout << base::CompactJson(out) << "\n";
  }
}
