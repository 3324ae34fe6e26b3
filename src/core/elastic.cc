#include "core/elastic.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "base/strings.h"
#include "core/planted_bugs.h"

namespace core {

using api::ReplicaId;
using api::Role;

Finish FinishOf(const DataView* data, const ReplicaState& ended) {
  if (!data) return Finish::kDone;
  const Member who{ended.id, ended.attempt};
  if (data->unheard.contains(who)) return Finish::kWait;
  if (!data->misled.contains(who) || BUG(kMisledIsDone)) return Finish::kDone;
  if (data->complete || !data->registered) {
    return BUG(kMisledWaitsForEver) ? Finish::kWait : Finish::kDone;
  }
  if (data->todo > 0) return Finish::kReplace;
  return data->doing > 0 ? Finish::kWait : Finish::kDone;
}

bool IsElasticLoss(const api::Job& job, const ReplicaState& ended) {
  if (!job.extensions.elastic || ended.id.role != Role::kWorker || BUG(kElasticLossCounts)) {
    return false;
  }
  const Ending& ending = *ended.ending;
  if (!ending.memory_limit_by.empty() || !ending.hang.empty()) return false;
  // A pod's status has 128 + signal for both.
  const int32_t signal = ending.signal ? ending.signal : ending.code - 128;
  constexpr std::array kFromOutside = {SIGHUP, SIGINT, SIGKILL, SIGTERM};
  return std::ranges::find(kFromOutside, signal) != kFromOutside.end();
}

int32_t MostWorkers(const api::Job& job) {
  const int32_t wanted = api::ReplicasOf(job.spec, Role::kWorker);
  return job.extensions.elastic ? std::max(wanted, job.extensions.elastic->max) : wanted;
}

int32_t WorkerNumber(ReplicaId id, int32_t attempt) {
  const int32_t kind = id.role == Role::kEvaluator                           ? 2
                       : id.role == Role::kChief || id.role == Role::kMaster ? 1
                                                                             : 0;
  return (attempt % 32768) << 16 | kind << 14 | (id.index % 16384);
}

std::vector<std::pair<std::string, std::string>> ElasticEnvironment(const api::Job& job,
                                                                    ReplicaId id, int32_t attempt,
                                                                    const std::string& master) {
  return {
      {"MASTER_ADDR", master},
      {"DLROVER_MASTER_ADDR", master},
      {"WORKER_ID", std::to_string(WorkerNumber(id, attempt))},
      {"WORKER_NUM", std::to_string(api::ReplicasOf(job.spec, Role::kWorker))},
      {"WORKER_TYPE", std::string(api::LowerName(id.role))},
      {"RELAUNCHED_POD", attempt > 0 ? "true" : "false"},
  };
}

std::string MemberName(ReplicaId id, int32_t attempt) {
  return api::ToString(id) + "@" + std::to_string(attempt);
}

std::optional<Member> MemberFrom(std::string_view name) {
  const size_t at = name.rfind('@');
  if (at == std::string_view::npos) return std::nullopt;
  const auto id = api::ReplicaIdFrom(name.substr(0, at));
  const auto attempt = base::ParseInt(name.substr(at + 1));
  if (!id || !attempt || *attempt < 0 || *attempt > INT32_MAX) return std::nullopt;
  return Member{*id, static_cast<int32_t>(*attempt)};
}

}  // namespace core
