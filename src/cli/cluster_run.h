// `run`, `resume` and `render` for a cluster.
#pragma once

#include <string>

#include "cli/args.h"

namespace cli {

int RunOnCluster(const Args& args, const std::string& context);
int ResumeOnCluster(const Args& args, const std::string& context);
int RenderForCluster(const Args& args, const std::string& context);

}  // namespace cli
