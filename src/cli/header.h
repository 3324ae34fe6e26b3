// The first line of a run: what, where, of which shape, with which code.
#pragma once

#include <string>

#include "api/tfjob.h"

namespace cli {

// "2 workers, 1 ps, 1 chief"
std::string Shape(const api::JobSpec& spec);

// `where` is "local" or a cluster, `with` the Python or the image, `as` what a resumed job runs
// with. What is empty is left out.
std::string Header(const api::Job& job, const std::string& where, const std::string& code,
                   const std::string& with, const std::string& as = "");

}  // namespace cli
