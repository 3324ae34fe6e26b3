// The last part of a turn: what was decided and published is done.
#include <algorithm>

#include "backend/cluster/pod_group.h"
#include "backend/cluster/turns.h"
#include "core/endings.h"
#include "core/services.h"

namespace backend::cluster {
namespace {

using api::ReplicaId;
using base::Error;

// For what must not linger: the kubelet sends SIGTERM and, a second later, SIGKILL. (0 would free
// the name while the process may still run.)
constexpr int64_t kNoGrace = 1;

// What the author gives a replica to end in.
base::Duration GraceOf(const api::Job& job, ReplicaId id) {
  constexpr int64_t kDefault = 30;  // as Kubernetes
  const auto role = job.spec.replicas.find(id.role);
  const base::Json* spec =
      role == job.spec.replicas.end() ? nullptr : base::Find(role->second.pod_template, "spec");
  return std::chrono::seconds(spec ? base::IntOr(*spec, "terminationGracePeriodSeconds", kDefault)
                                   : kDefault);
}

// A pod of the job that another operator made. One that is on its way out takes no finalizer.
bool IsUnheld(const Pod& pod, const StoredJob& job, const Settings& settings) {
  return HoldsPods(*job.value, settings) && !pod.held && !pod.replica.deleting && pod.owner == job.uid &&
         pod.key.name == ReplicaName(*job.value, pod.replica.id);
}

}  // namespace

void Turns::Perform(const TurnPtr& turn) {
  Clear(turn);
  for (const ReplicaId id : turn->without_service) {
    deeds_.CreateService(turn->job, id, turn->creations, Part(turn));
  }
  if (!settings_.gang_scheduler.empty()) PrepareGroup(turn);
  Join(turn, &Turns::StartPods);
}

std::vector<ReplicaId> Turns::MissingServices(const Turn& turn) const {
  std::vector<ReplicaId> out;
  for (const auto& [role, spec] : turn.job->spec.replicas) {
    for (int32_t i = 0; i < spec.replicas; ++i) {
      const ReplicaId id{role, i};
      const Service* there = know_.services.Find({turn.key.name_space, ReplicaName(*turn.job, id)});
      // That of a job before this one may have gone, and we have not heard of it yet.
      if (there && !IsOfAnother(*there, turn.stored.uid)) continue;
      const auto wish = core::WishFor(*turn.job, turn.decision.status, turn.observed, id);
      if (wish == core::ServiceWish::kMake) out.push_back(id);
    }
  }
  return out;
}

// Of a job that lives; one that has ended stays so.
bool Turns::RemovesServices(const Turn& turn) const {
  const api::JobStatus& status = turn.decision.status;
  if (api::IsTerminal(status)) return false;
  return std::ranges::any_of(know_.services.Of(turn.key), [&](const Service* service) {
    return service->owner == turn.stored.uid && !service->deleting &&
           core::WishFor(*turn.job, status, turn.observed, service->id) ==
               core::ServiceWish::kRemove;
  });
}

// What is to end or to go, and what we need not hold any more.
void Turns::Clear(const TurnPtr& turn) {
  // What cleanPodPolicy takes away is what runs. A pod may have ended by itself a moment ago.
  const bool over = api::IsTerminal(turn->decision.status);
  const auto end = [&](const std::string& incarnation, auto grace_for) {
    const auto pod = std::ranges::find(turn->pods, incarnation, &Pod::uid);
    if (pod == turn->pods.end()) return;
    const std::optional<int64_t> grace = grace_for(*pod);
    // Asked already, for no longer than we would.
    if (pod->replica.deleting && (!grace || pod->grace <= *grace)) return;
    deeds_.DeletePod(turn->job, *pod, grace, over, Part(turn));
  };
  using Grace = std::optional<int64_t>;
  for (const core::Action& action : turn->decision.actions) {
    if (const auto* stop = std::get_if<core::Stop>(&action)) {
      if (stop->finish && PutOff(turn, *stop)) continue;
      end(stop->incarnation, [&](const Pod&) { return stop->graceful ? Grace() : kNoGrace; });
    } else if (const auto* remove = std::get_if<core::Remove>(&action)) {
      // Nothing of it runs: no kubelet needs to be waited for.
      end(remove->incarnation, [](const Pod& pod) { return pod.finished ? Grace(0) : Grace(); });
    } else if (std::holds_alternative<core::DeleteJob>(action) && !settings_.until_end) {
      deeds_.DeleteJob(turn->job, Part(turn));
    }
  }
  if (auto& members = entries_[turn->key].members) {
    for (const core::Stop& stop : members->TakeOverdue(turn->began))
      end(stop.incarnation, [](const Pod&) { return Grace(); });
  }
  const api::JobStatus& status = turn->decision.status;
  for (const Pod& pod : turn->pods) {
    if (pod.held && core::IsTakenIn(*turn->job, status, pod.replica)) {
      deeds_.Release(pod, Part(turn));
    } else if (IsUnheld(pod, turn->stored, settings_) && core::IsAwaited(*turn->job, status, pod.replica)) {
      deeds_.Hold(turn->job, pod, Part(turn));
    }
  }
  for (const Service* service : know_.services.Of(turn->key)) {
    if (service->owner != turn->stored.uid || service->deleting) continue;
    if (core::WishFor(*turn->job, status, turn->observed, service->id) !=
        core::ServiceWish::kRemove) {
      continue;
    }
    if (!over || turn->job->spec.run_policy.clean_pod_policy != api::CleanPodPolicy::kRunning) {
      deeds_.DeleteService(turn->job, *service, Part(turn));
      continue;
    }
    // It stays if its pod has ended and stays. Our view of pods may be from before that.
    deeds_.LookUpPod(
        turn->job, service->id,
        [this, turn, service = *service, done = Part(turn)](std::optional<Error> error) {
          const Pod* pod = know_.pods.Find(service.key);
          const bool gone = error && error->kind() == base::ErrorKind::kNotFound;
          const bool leaves = gone || (!error && pod && pod->replica.deleting);
          leaves ? deeds_.DeleteService(turn->job, service, done) : done(std::move(error));
        });
  }
}

// A worker of an elastic job gets no more data, and has its grace period to finish what it has.
// Only then its pod is deleted, which gives it that period once more, from SIGTERM on.
bool Turns::PutOff(const TurnPtr& turn, const core::Stop& stop) {
  Entry& entry = entries_[turn->key];
  const auto pod = std::ranges::find(turn->pods, stop.incarnation, &Pod::uid);
  if (!entry.members || pod == turn->pods.end() || pod->replica.deleting) return false;
  entry.members->Leave(stop, turn->began + GraceOf(*turn->job, stop.id));
  WakeAt(turn->key, entry, *entry.members->next());
  return true;
}

// A group is there before its pods, and goes when none are wanted any more.
void Turns::PrepareGroup(const TurnPtr& turn) {
  const PodGroup* group = know_.pod_groups.Find(turn->key);
  if (group && IsOfAnother(*group, turn->stored.uid)) group = nullptr;
  const bool ours = group && group->owner == turn->stored.uid && !group->deleting;
  const bool wanted =
      !api::IsTerminal(turn->decision.status) && !turn->job->spec.run_policy.suspend;
  if (!wanted) {
    if (ours) deeds_.DeletePodGroup(turn->job, *group, Part(turn));
  } else if (!group || (ours && !IsUpToDate(*group, *turn->job, settings_))) {
    deeds_.EnsurePodGroup(turn->job, group, turn->creations, Part(turn));
  }
}

// After the services, so that every name can be looked up when the first process starts.
void Turns::StartPods(TurnPtr turn) {
  const PodGroup* group = know_.pod_groups.Find(turn->key);
  const bool admitted =
      settings_.gang_scheduler.empty() || (group && PodsMayStart(*group, settings_));
  if (!turn->error && admitted) {
    for (const core::Action& action : turn->decision.actions) {
      const auto* start = std::get_if<core::Start>(&action);
      if (!start) continue;
      // The master of the data hears of it first; its answer wakes us.
      if (auto& members = entries_[turn->key].members; members && !members->MayStart(*start))
        continue;
      if (const Pod* pod =
              know_.pods.Find({turn->key.name_space, ReplicaName(*turn->job, start->id)})) {
        // That of a job before this one goes by itself, and its end will wake us.
        const bool goes = !pod->owner.empty() && Manages(*pod) && pod->job == turn->key;
        if (!goes) entries_[turn->key].troubles.TellTaken(*turn->job, *pod, chronicle_);
        continue;
      }
      deeds_.CreatePod(turn->job, start->id, start->attempt, turn->creations,
                       [this, turn, done = Part(turn)](std::optional<Error> error) {
                         if (WillNeverDo(error))
                           entries_[turn->key].refusal = {turn->job, error->text()};
                         done(std::move(error));
                       });
    }
  }
  Join(turn, &Turns::Over);
}

}  // namespace backend::cluster
