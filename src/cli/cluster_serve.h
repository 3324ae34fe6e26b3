// A model served beside its job on a cluster, reached through ports of this machine or from within.
#pragma once

#include <string>

#include "cli/args.h"

namespace cli {

// `serve` on the cluster of this context; the exit status.
int ServeThere(const Args& args, const std::string& context);

}  // namespace cli
