// The annotations trainyard.dev/* of a TFJob, read and written.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/field_reader.h"
#include "api/tfjob.h"

namespace api {

// `annotations` is the node of metadata.annotations.
Extensions DecodeExtensions(const base::Node& annotations, const std::string& path,
                            FieldReader& reader);

// "1:4"; nothing for what is no such pair.
std::optional<Elastic> ParseElastic(const std::string& text);

// Sets the annotations that are needed for `extensions` to be read back.
void EncodeExtensions(const Extensions& extensions,
                      std::map<std::string, std::string>& annotations);

}  // namespace api
