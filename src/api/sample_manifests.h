// For tests: manifests with one thing changed, and what DecodeJob says about them.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "api/decode.h"

namespace api {

inline constexpr std::string_view kTemplate =
    "{spec: {containers: [{name: tensorflow, image: a}]}}";

// A job named a with this spec, in flow style.
inline std::string WithSpec(const std::string& spec,
                            const std::string& version = "kubeflow.org/v1") {
  return "apiVersion: " + version + "\nkind: TFJob\nmetadata: {name: a}\nspec: {" + spec + "}\n";
}

// A job of one worker, with more in its spec or in the worker.
inline std::string OneWorker(const std::string& spec = "", const std::string& worker = "") {
  return WithSpec((spec.empty() ? "" : spec + ", ") + "tfReplicaSpecs: {Worker: {" +
                  (worker.empty() ? "" : worker + ", ") + "template: " + std::string(kTemplate) +
                  "}}");
}

inline std::string WithContainers(const std::string& containers) {
  return WithSpec("tfReplicaSpecs: {Worker: {template: {spec: {containers: " + containers + "}}}}");
}

// The errors without their positions, one a line.
inline std::string Errors(std::string_view text) {
  std::string out;
  for (const FieldError& error : DecodeJob(text).errors) {
    if (!out.empty()) out += "\n";
    out += error.path + ": " + error.detail;
  }
  return out;
}

inline Job Good(std::string_view text) {
  const Decoded decoded = DecodeJob(text);
  EXPECT_EQ(Describe(decoded.errors, "good.yaml"), "") << text;
  return decoded.job;
}

}  // namespace api
