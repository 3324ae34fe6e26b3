// This machine as a place of jobs: their directories, and their supervisors where they have one.
#pragma once

#include <memory>
#include <string>

#include "backend/local/job_dir.h"
#include "cli/place.h"

namespace cli {

std::unique_ptr<Place> OpenLocalPlace();

// The highest numbered model version below a directory, as TensorFlow Serving counts them; empty
// when there is none.
std::string NewestModel(const std::string& output);

// What a job on this machine has left: the newest model and checkpoint that lie there.
Kept KeptLocally(const backend::local::JobDir& dir, const std::string& output,
                 const std::string& name);

}  // namespace cli
