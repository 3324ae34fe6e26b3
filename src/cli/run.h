// A job of this machine, started from a plan.
#pragma once

#include "cli/plan.h"

namespace cli {

struct RunWish {
  bool detach = false;  // leave it running and return
  bool raw = false;     // log lines exactly as they were printed
  bool json = false;
};

// Claims a directory for it and supervises it, here or left behind; the exit status.
int RunHere(const Plan& plan, const RunWish& wish);

}  // namespace cli
