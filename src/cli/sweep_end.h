// `sweep stop` and `sweep delete`, of a sweep that runs in another process or in none, with the
// jobs of its trials, wherever they live.
#pragma once

#include "cli/args.h"

namespace cli {

// Ends it as Ctrl-C would. The exit status.
int StopSweep(const Args& args);

// Its records and those of its trials' jobs, with --with-output also what they made.
int DeleteSweep(const Args& args);

}  // namespace cli
