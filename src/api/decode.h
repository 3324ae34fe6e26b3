// Reads a job from a manifest: YAML or JSON, TFJob v1 or one of its older spellings.
//
// All errors are reported at once, each with the path of the field and its line:column, so that a
// person fixes a manifest in one go. Nothing is guessed: an unknown field of ours is an error that
// names the nearest known one; unknown fields of pod templates are kept as they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tfjob.h"
#include "base/json.h"
#include "base/result.h"
#include "base/yaml.h"

namespace api {

struct FieldError {
  std::string path;  // "spec.tfReplicaSpecs.Worker.replicas"
  int line = 0;      // 1-based; 0: unknown
  int column = 0;
  std::string detail;  // "must be at least 0, not -1"
  bool operator==(const FieldError&) const = default;
};

struct Decoded {
  Job job;  // defaults filled in; meaningful only when there are no errors
  // In the order of the text. After the first 200, one without a place tells how many more.
  std::vector<FieldError> errors;
  // Accepted, but the author should know: "14:9: spec.tensorboard: is ignored: ...".
  std::vector<std::string> warnings;
  std::string
      spelling;  // "v1", "v1beta2 (top-level policies)", "v1alpha1 (list form)": for messages
  bool says_namespace = false;  // or metadata.namespace is "default" because none was written
};

// `text` holds one document. Refuses more than 1 MiB, nesting beyond 64, more than 64 aliases or an
// expansion beyond 16 MiB.
Decoded DecodeJob(std::string_view text);

// The same for an object that was JSON already, from the API server say; errors have no positions.
Decoded DecodeJobObject(const base::Json& object);

// The same for one object of a larger text (api/manifest.h); here it may be a plain Job too.
Decoded DecodeJobNode(base::Node root);

// "mnist.yaml:14:9: spec.tfReplicaSpecs.Worker.replicas: must be at least 0, not -1", one line an
// error.
std::string Describe(const std::vector<FieldError>& errors, const std::string& file);

// The rules that hold for any job, from flags or manifest: names, counts, ports, lengths. Paths
// only, no positions.
std::vector<FieldError> Validate(const Job& job);

// What an update of a job must leave as it was: managedBy, and a queue that both name.
std::vector<FieldError> ValidateUpdate(const Job& before, const Job& after);

}  // namespace api
