// The first part of a turn where what we know does not do: a look at the server itself.
#include "backend/cluster/turns.h"

namespace backend::cluster {

using api::ReplicaId;
using base::Error;

bool Turns::IsOrphan(const Pod& pod, const StoredJob& job) {
  return pod.owner.empty() && !pod.replica.deleting &&
         pod.key.name == ReplicaName(*job.value, pod.replica.id) && !job.deleting &&
         job.invalid.empty() && IsOurs(*job.value) && !api::IsTerminal(job.value->status);
}

void Turns::LookUp(const TurnPtr& turn, ReplicaId id) {
  deeds_.LookUpPod(turn->job, id, [turn, done = Part(turn)](std::optional<Error> error) {
    const bool gone = error && error->kind() == base::ErrorKind::kNotFound;
    turn->old_view = turn->old_view || !error;
    done(gone ? std::nullopt : std::move(error));
  });
}

// The job says that these pods were there. If we do not know them because our view of pods is
// older than the job, another operator's say, they are not lost. And what a job ends with is for
// good.
void Turns::LookFor(const TurnPtr& turn) {
  for (const ReplicaId id : turn->decision.missed) LookUp(turn, id);
  Join(turn, &Turns::LookedFor);
}

// One that was found tells that our view is old: nothing is decided on the rest of it either.
void Turns::LookedFor(TurnPtr turn) {
  if (turn->old_view) {
    for (const core::ReplicaState& r : turn->observed.replicas) LookUp(turn, r.id);
  }
  Join(turn, &Turns::LookedAtAll);
}

void Turns::LookedAtAll(TurnPtr turn) {
  if (!turn->error) {
    Entry& entry = entries_[turn->key];
    entry.missed = turn->stored.version;
    if (turn->old_view) entry.current = turn->stored.version;
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
      } else if (pod.held && pod.owner != living) {
        deeds_.Release(pod, Part(turn));
      }
    }
    entries_[turn->key].confirmed = living;
  }
  Join(turn, &Turns::Again);
}

}  // namespace backend::cluster
