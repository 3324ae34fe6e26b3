#include "cli/pod_python.h"

#include <string>

#include <fmt/core.h>

#include "job_python.h"

namespace cli {
namespace {

using base::JsonArray;
using base::JsonObject;
using base::ObjectAt;

constexpr std::string_view kAnnotation = "trainyard.dev/sitecustomize";
constexpr std::string_view kVolume = "trainyard-python";

}  // namespace

void AnnotateWithPython(JsonObject& pod_template) {
  ObjectAt(ObjectAt(pod_template, "metadata"), "annotations")[kAnnotation] =
      job_python::kSitecustomizePy;
}

JsonObject PythonVolume() {
  JsonObject field{{"fieldPath", fmt::format("metadata.annotations['{}']", kAnnotation)}};
  JsonObject item{{"path", "sitecustomize.py"}, {"fieldRef", std::move(field)}};
  return {{"name", kVolume}, {"downwardAPI", JsonObject{{"items", JsonArray{std::move(item)}}}}};
}

JsonObject PythonVolumeMount() {
  return {{"name", kVolume}, {"mountPath", kPythonMount}, {"readOnly", true}};
}

}  // namespace cli
