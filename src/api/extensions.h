// The annotations trainyard.dev/* of a TFJob, read and written.
#pragma once

#include <map>
#include <string>

#include "api/field_reader.h"
#include "api/tfjob.h"

namespace api {

// `annotations` is the node of metadata.annotations.
Extensions DecodeExtensions(const base::Node& annotations, const std::string& path,
                            FieldReader& reader);

// Sets the annotations that are needed for `extensions` to be read back.
void EncodeExtensions(const Extensions& extensions,
                      std::map<std::string, std::string>& annotations);

}  // namespace api
