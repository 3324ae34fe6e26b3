// The part of a pod template that a training job depends on: its containers and their ports.
//
// Everything else in a template passes through as written; Kubernetes judges it. What is checked
// here would either be refused by Kubernetes too, or keep the job from working.
#pragma once

#include <string>

#include "api/field_reader.h"
#include "api/tfjob.h"

namespace api {

// Checks the template of one replica type. `replica` is the map that it is a member of.
void CheckPodTemplate(const base::Node& replica, const std::string& replica_path,
                      FieldReader& reader);

// The port named tfjob-port of the container named tensorflow; the default when there is none.
int32_t PortOf(const base::Json& pod_template);

// As training-operator v1.9: appends the port to the container named tensorflow or, without one, to
// the first, unless it has a port of that name. A template without containers stays as it is.
void AddPort(base::Json& pod_template, int32_t port);

}  // namespace api
