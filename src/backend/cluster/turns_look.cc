// The first part of a turn where what we know does not do: a look at the server itself.
#include <algorithm>

#include "backend/cluster/turns.h"

namespace backend::cluster {
namespace {

constexpr base::Duration kLongestBehind = std::chrono::minutes(2);

}  // namespace

using api::ReplicaId;
using base::Error;

bool Turns::IsOrphan(const Pod& pod, const StoredJob& job) {
  return pod.owner.empty() && !pod.replica.deleting &&
         pod.key.name == ReplicaName(*job.value, pod.replica.id) && !job.deleting &&
         job.invalid.empty() && IsOurs(*job.value) && !api::IsTerminal(job.value->status);
}

// The job says that these pods were there. If we do not know them because our view of pods is
// older than the job, another operator's say, they are not lost.
void Turns::LookFor(const TurnPtr& turn) {
  for (const ReplicaId id : turn->decision.missed) {
    deeds_.LookUpPod(turn->job, id, [turn, done = Part(turn)](std::optional<Error> error) {
      const bool gone = error && error->kind() == base::ErrorKind::kNotFound;
      turn->found = turn->found || !error;
      done(gone ? std::nullopt : std::move(error));
    });
  }
  Join(turn, &Turns::LookedFor);
}

// One that was found tells that our view is old: nothing is decided on the rest of it either.
void Turns::LookedFor(TurnPtr turn) {
  if (!turn->error) entries_[turn->key].missed = turn->stored.version;
  !turn->error && turn->found ? Survey(turn) : Again(turn);
}

// A view of pods or services that is older than the job (lists and watches may be served from the
// past, more so after a start of ours) may lack what there is. To make it once more would most
// often be refused, but not always: the names of a new shape are free while the old generation
// still runs, and a request that is long under way may come when the job is over. And what a job
// ends with is for good.
bool Turns::NeedsSurvey(const Turn& turn) const {
  const bool ends = api::IsTerminal(turn.decision.status) && !api::IsTerminal(turn.job->status);
  const bool starts = std::ranges::any_of(turn.decision.actions, [](const core::Action& action) {
    return std::holds_alternative<core::Start>(action);
  });
  return ((ends || starts) && !turn.pods_current) ||
         (!turn.without_service.empty() && !turn.services_current);
}

// Nothing more is done in this turn, and in those that follow while no server has a list that is
// as new as the job. That ends: should versions of jobs and of pods be no measure for each other
// here, then the server's word must do.
void Turns::Survey(const TurnPtr& turn) {
  Entry& entry = entries_[turn->key];
  if (!entry.behind) entry.behind = turn->began;
  const bool wait = turn->began < *entry.behind + kLongestBehind;
  const kube::Version at_least = wait ? turn->stored.version : 0;
  deeds_.SurveyPods(turn->job, at_least, Part(turn));
  deeds_.SurveyServices(turn->job, at_least, Part(turn));
  Join(turn, &Turns::Surveyed);
}

void Turns::Surveyed(TurnPtr turn) {
  if (!turn->error) {
    Entry& entry = entries_[turn->key];
    entry.pods_at = entry.services_at = turn->stored.version;
    entry.behind.reset();
  }
  Again(turn);
}

void Turns::LetGo(TurnPtr turn) {
  if (!turn->error) {
    const StoredJob* stored = know_.jobs.Find(turn->key);
    const std::string living = stored && !stored->deleting ? stored->uid : "";
    for (const Pod& pod : turn->pods) {
      if (stored && IsOrphan(pod, *stored)) {
        deeds_.LookUpPod(stored->value, pod.replica.id, Part(turn));
      } else if (pod.held && !IsOwned(pod, living)) {
        deeds_.Release(pod, Part(turn));
      }
    }
    entries_[turn->key].confirmed = living;
  }
  Join(turn, &Turns::Again);
}

}  // namespace backend::cluster
