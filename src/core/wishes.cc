#include "core/wishes.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/conditions.h"
#include "core/restart_policy.h"
#include "core/verdict.h"

namespace core {

using api::Role;
using base::Time;

std::optional<Heeded> Heed(const api::Job& job, Time now) {
  Heeded out{.status = job.status};
  api::Job so_far = job;
  if (job.extensions.life > job.status.life) {
    if (api::Has(job.status, "Failed")) {
      out.status = Revived(job, now);
      out.events.push_back(
          {false, "TFJobResumed", fmt::format("TFJob {} is resumed.", job.metadata.name)});
    }
    out.status.life = job.extensions.life;
    so_far.status = out.status;
  }
  const std::string& by = job.extensions.stopped_by;
  if (!by.empty() && !api::IsTerminal(out.status)) {
    out.status = Stopped(so_far, by, now);
    out.events.push_back({false, "TFJobStopped", "stopped by " + by});
  }
  if (out.status == job.status) return std::nullopt;
  return out;
}

bool IsOver(const api::Job& job) {
  return api::IsTerminal(job.status) && job.extensions.life <= job.status.life;
}

bool WasStopped(const api::JobStatus& status) {
  const api::Condition* failed = api::FindCondition(status, "Failed");
  return failed && failed->status && failed->reason == "TFJobStopped";
}

api::JobStatus Stopped(const api::Job& job, const std::string& by, Time now) {
  api::JobStatus status = job.status;
  if (api::IsTerminal(status)) return status;
  SetCondition(status, "Failed", true, "TFJobStopped",
               fmt::format("TFJob {} was stopped by {}.", job.metadata.name, by), now);
  status.completion_time = std::chrono::floor<std::chrono::seconds>(now);
  status.verdict = api::Verdict{.result = "stopped",
                                .cause = "stopped by " + by,
                                .advice = "trainyard resume " + job.metadata.name,
                                .exit_status = kExitStopped};
  return status;
}

api::JobStatus Refused(const api::Job& job, const std::string& why, Time now) {
  api::JobStatus status = job.status;
  if (api::IsTerminal(status)) return status;
  if (status.conditions.empty()) {
    SetCondition(status, "Created", true, "TFJobCreated",
                 fmt::format("TFJob {} is created.", job.metadata.name), now);
  }
  SetCondition(status, "Failed", true, "TFJobFailedValidation",
               fmt::format("TFJob {} failed validation because the spec is invalid: {}",
                           job.metadata.name, why),
               now);
  status.completion_time = std::chrono::floor<std::chrono::seconds>(now);
  status.verdict = api::Verdict{.result = "failed",
                                .cause = "the spec is invalid: " + why,
                                .advice = "correct the manifest, delete the job and apply it again",
                                .exit_status = 2};
  return status;
}

api::JobStatus Revived(const api::Job& job, Time now) {
  api::JobStatus status = job.status;
  if (api::Has(status, "Succeeded")) return status;
  std::erase_if(status.conditions, [](const api::Condition& c) { return c.type != "Created"; });
  status.completion_time.reset();
  status.verdict.reset();
  status.restarts = status.disruptions = 0;
  status.start_time = std::chrono::floor<std::chrono::seconds>(now);
  status.gang = {.attempt = ++status.attempt, .not_before = now, .planned = true};
  status.units.clear();
  // Also those that were scaled away since the last pass, and may be wanted again before the next.
  int32_t evaluators = api::ReplicasOf(job.spec, Role::kEvaluator);
  if (auto it = status.shape.find(Role::kEvaluator); it != status.shape.end()) {
    evaluators = std::max(evaluators, it->second);
  }
  for (int32_t i = 0; i < evaluators; ++i) status.units[{Role::kEvaluator, i}] = status.gang;
  status.completed.clear();
  status.seen.clear();
  return status;
}

api::JobStatus BackedOff(const api::Job& job, const std::string& why, Time until, Time now) {
  api::JobStatus status = job.status;
  if (api::IsTerminal(status)) return status;
  // Not planned: its replicas wait for others that cannot start, and have nothing to save.
  status.gang = {.attempt = ++status.attempt, .not_before = until};
  const auto in_gang = [](api::ReplicaId id) { return InGang(id.role); };
  std::erase_if(status.units, [&](const auto& entry) { return in_gang(entry.first); });
  std::erase_if(status.completed, in_gang);
  std::erase_if(status.seen, in_gang);
  if (api::Has(status, "Running")) {
    SetCondition(status, "Running", false, "TFJobBackedOff", why, now);
  }
  return status;
}

}  // namespace core
