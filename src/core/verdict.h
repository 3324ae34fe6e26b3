// Why a job ended as it did, in words a person can act on.
//
// Pure: from exit codes, signals, memory counters, times and the last lines of logs to one sentence
// of cause and one thing to try. Endings that only followed from another's (a peer lost, a
// collective aborted) are recognised, so that the one to blame is named.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tfjob.h"
#include "core/observed.h"

namespace core {

// Exit statuses of `trainyard run` that are not a replica's own.
inline constexpr int32_t kExitByLimit = 64;
inline constexpr int32_t kExitStopped = 65;

// The line of a log's end that says what went wrong: the exception of the last Python traceback,
// else the last line that reads like an error, else the last line.
std::string TellingLine(const std::vector<std::string>& last_lines);

// The line says that somebody else was lost, not that its own program went wrong.
bool BlamesAPeer(std::string_view line);

// "killed by SIGKILL", "exited with status 1", "ran out of memory (…)": reads after a replica's
// name.
std::string WhatHappened(const Ending& ending);

// What to try after this ending; empty when we know nothing better than to read the log. `in_pods`:
// the job runs on a cluster.
std::string Advice(const api::Job& job, api::ReplicaId id, const Ending& ending,
                   bool in_pods = false);

api::Verdict FailedBecause(const api::Job& job, api::ReplicaId id, const Ending& ending,
                           bool in_pods = false);
api::Verdict FailedByLimit(const std::string& cause, const std::string& advice);
api::Verdict SucceededBecause(const api::Job& job);

}  // namespace core
