// What those who keep jobs on a cluster are told alike, operators and masters.
#pragma once

#include "backend/cluster/objects.h"
#include "cli/args.h"

namespace cli {

// By the command line, and by the environment as training-operator has it.
backend::cluster::Settings SettingsFrom(const Args& args);

}  // namespace cli
