// `doctor` for a cluster: is it fit to train, and may we.
#pragma once

#include <string>

#include "cli/args.h"

namespace cli {

int ExamineCluster(const Args& args, const std::string& context);

}  // namespace cli
