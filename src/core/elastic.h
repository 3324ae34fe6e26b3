// Rules of elastic jobs, whose data a master hands out in shards (docs/elastic.md).
//
// Published clients of the shard service take a lost connection for the end of the data, and then
// exit 0. So an exit with 0 is the end of a replica's work only when the master says that it may
// have known better, or when there is no more to do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/tfjob.h"
#include "core/observed.h"

namespace core {

// What an exit with status 0 says.
enum class Finish {
  kDone,     // the data is complete, or it had no reason to think so and stopped of its own accord
  kWait,     // cannot be told yet: others have the last shards, or the master has not heard of it
  kReplace,  // it was misled, and there are shards to take
};
// `data` is null where nobody keeps the job's data.
Finish FinishOf(const DataView* data, const ReplicaState& ended);

// A worker of an elastic job that somebody or something ended from outside: expected where nodes
// are lent, and no failure of its program. What a program does to itself (a segmentation fault, an
// abort), and one that outgrew its memory, is.
bool IsElasticLoss(const api::Job& job, const ReplicaState& ended);

// How many workers the job may come to have.
int32_t MostWorkers(const api::Job& job);

// Its WORKER_ID: worker N of the first attempt is N, as in ElasticDL; no two incarnations of a
// job share a number, whatever their roles. Index and attempt wrap at 16384 and 32768.
int32_t WorkerNumber(api::ReplicaId id, int32_t attempt);

// What its replicas are told in their environment, as ElasticDL and DLRover have it, so that their
// clients find the master of the data. `master` is its address.
std::vector<std::pair<std::string, std::string>> ElasticEnvironment(const api::Job& job,
                                                                    api::ReplicaId id,
                                                                    int32_t attempt,
                                                                    const std::string& master);

// "worker-0@2": how an incarnation is called between a job's host and its master.
std::string MemberName(api::ReplicaId id, int32_t attempt);
std::optional<Member> MemberFrom(std::string_view name);

// How long an evaluator that still runs when training is over may take to evaluate the last
// checkpoint, where the job does not wait for it. Then it is asked to end, and counts as succeeded.
inline constexpr base::Duration kLastEvaluation = std::chrono::seconds(30);

}  // namespace core
