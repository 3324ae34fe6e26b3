// ElasticDL's client in a replica's Python: whether a program that imports it would start.
#pragma once

#include "backend/local/replica.h"
#include "base/result.h"

namespace cli {

// Refuses a Python program whose import of the client would fail, and names all that is missing and
// how to install it. Only the imports are read (check_client.py), so a program that cannot be
// judged, such as a shell script, passes.
base::Result<> CheckClient(const backend::local::Command& command);

}  // namespace cli
