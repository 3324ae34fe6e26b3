// Reads a manifest file: a job, and whatever stands beside it.
//
// The text is one YAML document, several, or JSON; a document is an object, a List of objects, or
// an OpenShift Template, which is expanded (api/template.h); Lists and Templates may hold each
// other. Among all the objects is exactly one job: a TFJob of any age (api/decode.h) or a plain
// Job (api/plain_job.h). The bounds are those of DecodeJob, for all of it together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/decode.h"
#include "api/template.h"

namespace api {

struct Manifest {
  Job job;                         // defaults filled in; means something only without errors
  bool says_namespace = false;     // or metadata.namespace is "default" because none was written
  std::vector<base::Json> others;  // the objects that are no job, in order
  // As Decoded's. When the objects could not be read or chosen from, these alone are told.
  std::vector<FieldError> errors;
  std::vector<std::string> warnings;
};

// `given` are values for the parameters of Templates, in UTF-8; they are refused where there is no
// Template.
Manifest ReadManifest(std::string_view text, const Values& given, const Random& random);

// The objects of a manifest file, with Lists and Templates expanded as `oc process` does it.
struct Objects {
  std::vector<base::Json> objects;
  bool any_template = false;
  bool any_job = false;  // one of them is a job
  std::vector<FieldError> errors;
  std::vector<std::string> warnings;
};

Objects ReadObjects(std::string_view text, const Values& given, const Random& random);

}  // namespace api
