#include "core/verdict.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include <fmt/core.h>

#include "base/strings.h"

namespace core {
namespace {

using api::Role;

constexpr std::string_view kTraceback = "Traceback (most recent call last)";

// What TensorFlow prints when a peer went away, seen with 2.15 and 2.21 (reference/tensorflow.md
// 3).
constexpr std::array<std::string_view, 12> kPeerLoss = {
    "Collective ops is aborted by",
    "UnavailableError",
    "heartbeat timeout",
    "Heartbeat timeout",
    "has missed heartbeats",
    "Connection reset by peer",
    "Socket closed",
    "failed to connect to all addresses",
    "Failed to connect to remote host",
    "coordination service agent",
    "CoordinationServiceError",
    "incarnation does not match",
};

constexpr std::string_view kPortInPod =
    "another container of the pod holds the port, or with hostNetwork another program of its node";

struct Cure {
  std::string_view in_line;
  std::string_view advice;
  std::string_view in_pods = advice;  // on a cluster
};

// Errors that have one well-known way out.
constexpr std::array<Cure, 6> kCures = {{
    {"Attempt to convert a value (PerReplica",
     "Keras 3's fit() does not work under MultiWorkerMirroredStrategy: set TF_USE_LEGACY_KERAS=1 "
     "with tf-keras "
     "installed, or use TensorFlow 2.15, or a custom training loop (examples/mnist.py)"},
    {"No module named 'tensorflow'",
     "this Python has no TensorFlow: pip install tensorflow-cpu, or name another with --python",
     "the image has no TensorFlow: name one that does with -i IMAGE, or in the manifest"},
    {"No module named",
     "install the missing module into the job's Python, or name another with --python",
     "if the module is yours, run its directory instead of the script; if not, name an image that "
     "has it with -i IMAGE: trainyard package DIR -t IMAGE makes one from a requirements.txt"},
    {"Could not start gRPC server", "another program holds the port: choose others with -p",
     kPortInPod},
    {"Address already in use", "another program holds the port: choose others with -p", kPortInPod},
    {"No space left on device", "free some disk space, or put the output elsewhere with --output",
     "free some space on the volume, or use a larger one: --output new:SIZE"},
}};

bool ReadsLikeAnError(std::string_view line) {
  for (std::string_view word :
       {"Error", "error:", "ERROR", "Exception", "Fatal", "FATAL", "F tensorflow",
        "terminate called", "Killed", "Segmentation fault", "Check failed"}) {
    if (line.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// "module.ValueError: text" or "KeyboardInterrupt": how Python ends a traceback.
bool IsExceptionLine(std::string_view line) {
  if (line.empty() || line[0] == ' ' || line[0] == '\t') return false;
  const size_t end =
      line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.");
  if (end == 0) return false;
  return end == std::string_view::npos || line[end] == ':';
}

std::string Mebibytes(int64_t bytes) { return fmt::format("{}Mi", bytes / (1 << 20)); }

}  // namespace

std::string TellingLine(const std::vector<std::string>& last_lines) {
  size_t from = last_lines.size();
  for (size_t i = last_lines.size(); i-- > 0;) {
    if (last_lines[i].find(kTraceback) != std::string::npos) {
      from = i + 1;
      break;
    }
  }
  // The exception is the first line after the traceback's frames that is not indented. A message of
  // several lines is told by its first.
  for (size_t i = from; i < last_lines.size(); ++i) {
    if (IsExceptionLine(last_lines[i])) return last_lines[i];
  }
  for (size_t i = last_lines.size(); i-- > 0;) {
    if (ReadsLikeAnError(last_lines[i])) return std::string(base::Trim(last_lines[i]));
  }
  for (size_t i = last_lines.size(); i-- > 0;) {
    if (!base::Trim(last_lines[i]).empty()) return std::string(base::Trim(last_lines[i]));
  }
  return "";
}

bool BlamesAPeer(std::string_view line) {
  return std::ranges::any_of(kPeerLoss, [&](std::string_view words) {
    return line.find(words) != std::string_view::npos;
  });
}

std::string WhatHappened(const Ending& ending) {
  if (!ending.start_error.empty()) return "could not be started: " + ending.start_error;
  if (!ending.memory_limit_by.empty()) {
    std::string text =
        "ran out of memory (killed at its limit of " + Mebibytes(ending.memory_limit);
    if (ending.memory_peak > 0) text += ", peak " + Mebibytes(ending.memory_peak);
    return text + ", by " + ending.memory_limit_by + ")";
  }
  if (!ending.hang.empty()) return "hung (" + ending.hang + ", aborted)";
  if (!ending.disruption.empty()) return "was taken away: " + ending.disruption;
  if (ending.signal != 0) {
    const char* name = sigabbrev_np(ending.signal);
    std::string text = name ? fmt::format("was killed by SIG{}", name)
                            : fmt::format("was killed by signal {}", ending.signal);
    if (ending.signal == SIGKILL && !ending.stopped) text += " from outside";
    return text;
  }
  return fmt::format("exited with status {}", ending.code);
}

std::string Advice(const api::Job& job, api::ReplicaId id, const Ending& ending, bool in_pods) {
  if (!ending.memory_limit_by.empty()) {
    const std::string more = Mebibytes(ending.memory_limit + ending.memory_limit / 2);
    if (id.role == Role::kPs) return "raise resources.limits.memory of the PS to " + more;
    return fmt::format("trainyard resume {} --worker-memory {}", job.metadata.name, more);
  }
  if (ending.start_error.starts_with("its working directory"))
    return "create the directory again, then: trainyard resume " + job.metadata.name;
  for (const std::string& line : ending.last_lines) {
    for (const Cure& cure : kCures) {
      if (line.find(cure.in_line) == std::string::npos) continue;
      return std::string(in_pods ? cure.in_pods : cure.advice);
    }
  }
  return fmt::format("trainyard logs {} -i {}", job.metadata.name, api::Spoken(id));
}

api::Verdict FailedBecause(const api::Job& job, api::ReplicaId id, const Ending& ending,
                           bool in_pods) {
  api::Verdict verdict{.result = "failed", .exit_status = ending.code == 0 ? 1 : ending.code};
  verdict.cause = api::Spoken(id) + " " + WhatHappened(ending);
  const std::string line = TellingLine(ending.last_lines);
  if (ending.signal == 0 && ending.memory_limit_by.empty() && !line.empty()) {
    verdict.cause += ": " + line;
  }
  verdict.advice = Advice(job, id, ending, in_pods);
  return verdict;
}

api::Verdict FailedByLimit(const std::string& cause, const std::string& advice) {
  return {.result = "failed", .cause = cause, .advice = advice, .exit_status = kExitByLimit};
}

namespace {

// Nothing for a job without data in shards.
std::string AboutData(const std::optional<api::Shards>& shards) {
  if (!shards) return "";
  std::string text = "all records";
  if (!shards->complete) {
    text = shards->records_total > 0 ? fmt::format("early stop with {} of {} records left",
                                                   shards->records_left, shards->records_total)
                                     : "early stop of data without end";
  }
  if (shards->quarantined > 0) {
    text += fmt::format(" but {}, set aside because every try at them failed", shards->quarantined);
  }
  return text;
}

}  // namespace

api::Verdict SucceededBecause(const api::Job& job) {
  api::Verdict verdict{
      .result = "succeeded", .cause = AboutData(job.status.shards), .exit_status = 0};
  if (job.status.shards && job.status.shards->quarantined > 0) {
    verdict.advice = "trainyard audit " + job.metadata.name;
  }
  const int32_t restarts = job.status.restarts;
  const int32_t disruptions = job.status.disruptions;
  if (restarts + disruptions == 0 || job.status.incidents.empty()) return verdict;
  const api::Incident& last = job.status.incidents.back();
  if (!verdict.cause.empty()) verdict.cause += "; ";
  verdict.cause += fmt::format(
      "started again {} on the way; the last time {} {}",
      restarts + disruptions == 1 ? "once" : fmt::format("{} times", restarts + disruptions),
      api::Spoken(last.replica), last.what);
  return verdict;
}

}  // namespace core
