// The hook of ElasticDL's client in pods: python/site/sitecustomize.py, whoever made the image.
//
// An annotation of the pod has the file, and a volume shows it. Unlike a ConfigMap, that is no
// object of its own to make, own and delete. Pure.
#pragma once

#include <string_view>

#include "base/json.h"

namespace cli {

// The directory with the file. PYTHONPATH must begin with it.
inline constexpr std::string_view kPythonMount = "/trainyard/python";

void AnnotateWithPython(base::JsonObject& pod_template);
base::JsonObject PythonVolume();
base::JsonObject PythonVolumeMount();

}  // namespace cli
