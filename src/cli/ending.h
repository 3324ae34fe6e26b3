// The last words of a run: result, cause, what was kept, what to do next.
#pragma once

#include <string>

#include "api/tfjob.h"
#include "cli/place.h"
#include "io/terminal.h"

namespace cli {

// Five lines at most, the same for `run`, `wait` and `why`.
std::string Ending(const api::Job& job, const Kept& kept, const io::Terminal& terminal);

// "Running", "Succeeded", "Stopped", "Interrupted" …: one word for a job's state, as `ps` shows it.
std::string StateWord(const api::JobStatus& status, bool alive);

// What `run` and `wait` exit with for a job that has ended; 69 when its supervisor is gone before
// that.
int ExitStatus(const api::JobStatus& status);

}  // namespace cli
