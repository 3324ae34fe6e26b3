// The control loop of the operator: for each job, one turn at a time.
//
//   observe   from the collections, which are never older than what this process did, nor, where
//             something is to be made or the job to end, than the job itself
//   decide    core::Reconcile, the same function as on one machine; nothing else decides
//   publish   the status, by a patch that names the version that was decided on
//   perform   services before pods, deletions by UID, everything of one kind in parallel
//   release   the finalizers of pods whose ending is in the published status now, and hold those
//             that another operator left without
//
// A turn spans several answers of the server. What changes meanwhile asks for another turn. A turn
// that failed is not repaired: what it left undone is found again by the next, after a pause that
// grows while failures repeat. So it does not matter at which point this process dies.
//
// The first turn of a job begins when the requests of those before it have mostly been sent: of a
// hundred jobs that come at once the first ones run while the last ones wait, and what is decided
// late is decided on the latest. Later turns do not wait for it, and status writes are sent before
// other requests: a job reads Running as soon as it does, however many new jobs wait. Services are
// created when nothing else waits, so a job that has its services gets its pods before the next one
// gets services: kubelets start its pods while the operator goes on with the next.
//
// An elastic job without a `data` of ours is a master's to keep until it has ended: a turn of it
// makes sure that there is one.
//
// One thread. Turns begin in Advance only, and go on as the answers come.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "backend/cluster/chronicle.h"
#include "backend/cluster/collection.h"
#include "backend/cluster/deeds.h"
#include "backend/cluster/fair_queue.h"
#include "backend/cluster/gangs.h"
#include "backend/cluster/objects.h"
#include "backend/cluster/pacer.h"
#include "backend/cluster/troubles.h"
#include "backend/cluster/tryouts.h"
#include "backend/members.h"
#include "core/reconcile.h"

namespace backend::cluster {

class Turns {
 public:
  // `data` hands out the data of elastic jobs; nothing: their masters do.
  Turns(Knowledge knowledge, Pacer& pacer, Chronicle& chronicle, Settings settings,
        DataMaster* data = nullptr);
  ~Turns();

  // Something changed for this job, or may have.
  void Wake(const Key& job);

  void Advance(base::Time now);
  // When Advance has something to do; nothing: when something has changed.
  std::optional<base::Time> next() const;

  size_t waiting() const { return begun_.size() + new_.size(); }

 private:
  // The server will never accept the pods of this job as it is written.
  struct Refusal {
    std::shared_ptr<const api::Job> job;
    std::string why;
    // False for another job of the same name, a corrected spec, and a job that is resumed. Compares
    // the spec itself: a job in a ConfigMap has no generation.
    bool AppliesTo(const api::Job& other) const {
      return job && job->metadata.uid == other.metadata.uid && job->spec == other.spec &&
             job->extensions.life == other.extensions.life;
    }
  };
  struct Entry {
    bool queued = false;
    bool busy = false;
    bool again = false;    // something changed during the turn
    std::string uid;       // of the job that all below is about
    int32_t failures = 0;  // turns in a row
    // The job of this UID was read from, or written to, the server itself in our lifetime, so that
    // what the collection says is not from before it.
    std::string confirmed;
    kube::Version looked = 0;  // read again at this version, because pods were ahead of it
    kube::Version missed = 0;  // pods that it says were there were looked for at this version
    // Our view of what it has is no older than this version of it.
    kube::Version pods_at = 0, services_at = 0;
    std::optional<base::Time> behind;  // since then a server that has it cannot be found
    bool fresh = false;                // read from the server itself just now, for the next turn
    Refusal refusal;
    base::Time published;
    std::optional<base::Time> due;
    Troubles troubles;
    std::unique_ptr<Members> members;    // of an elastic job whose data is handed out
    std::optional<base::Time> succeeds;  // decided then, and not told while pods close
    bool backed_off = false;             // for another job's sake; see gangs.h
    std::string given;                   // to a master, the job of this UID
    base::Time master_due;               // when to look at the master again
    std::optional<api::JobStatus> told;  // by the master, when we last looked
  };
  struct Turn;
  using TurnPtr = std::shared_ptr<Turn>;
  using Then = void (Turns::*)(TurnPtr);
  struct Turn {
    Key key;
    StoredJob stored;
    std::shared_ptr<const api::Job> job;  // of `stored`
    base::Time began;
    bool fresh = false;     // the job is as the server just said
    std::vector<Pod> pods;  // of the job's name that we manage, also those of an earlier job
    core::Observed observed;
    core::Decision decision;
    // Our view of these is no older than the job.
    bool pods_current = false, services_current = false;
    bool found = false;  // a pod that we did not know
    // As it was before the status was published: what goes missing later may have gone with the
    // job.
    std::vector<api::ReplicaId> without_service;
    size_t open = 0;      // deeds that are not done
    Then then = nullptr;  // what follows when there are none
    std::optional<base::Error> error;
    const std::shared_ptr<Creations> creations = std::make_shared<Creations>();
  };

  void Queue(const Key& key, Entry& entry);
  // Begins turns of jobs in `queue` whose namespace has room.
  template <typename HasRoom>
  void BeginFrom(FairQueue<Key>& queue, HasRoom has_room);
  void WakeAt(const Key& key, Entry& entry, base::Time when);

  // False: the pod belongs to another controller, such as the master of a job in a ConfigMap.
  bool Manages(const Pod& pod) const {
    return pod.owner.empty() || pod.owner_kind == settings_.owner_kind;
  }
  void Begin(const Key& key, Entry& entry, base::Time now);
  core::Decision Decide(const Turn& turn, Entry& entry);
  // turns_look.cc
  // By the living job of this UID; empty: none lives, and nobody's pod is no job's.
  static bool IsOwned(const Pod& pod, const std::string& uid) {
    return !uid.empty() && pod.owner == uid;
  }
  // A pod of a living job that somebody took its owner from.
  static bool IsOrphan(const Pod& pod, const StoredJob& job);
  void LookFor(const TurnPtr& turn);
  void LookedFor(TurnPtr turn);
  bool NeedsSurvey(const Turn& turn) const;
  void Survey(const TurnPtr& turn);
  void Surveyed(TurnPtr turn);
  void LetGo(TurnPtr turn);

  void Again(TurnPtr turn);
  bool IsTooEarly(const Turn& turn, Entry& entry);
  void Refuse(const TurnPtr& turn, const std::string& why);
  void GiveToMaster(const TurnPtr& turn, Entry& entry);
  void LookedAtMaster(const TurnPtr& turn, const MasterLook& look);
  void TryOut(const TurnPtr& turn);
  void TriedOut(TurnPtr turn);
  void Publish(const TurnPtr& turn);
  void Published(TurnPtr turn);
  void Reread(const TurnPtr& turn);
  void Perform(const TurnPtr& turn);
  void Clear(const TurnPtr& turn);
  bool PutOff(const TurnPtr& turn, const core::Stop& stop);
  void PrepareGroup(const TurnPtr& turn);
  void StartPods(TurnPtr turn);
  void Over(TurnPtr turn);

  std::vector<api::ReplicaId> MissingServices(const Turn& turn) const;
  bool RemovesServices(const Turn& turn) const;
  // For a deed of this turn.
  Deeds::Done Part(const TurnPtr& turn);
  // Goes on with `then` when all deeds so far are done.
  void Join(const TurnPtr& turn, Then then);

  Knowledge know_;
  const Pacer& pacer_;
  Chronicle& chronicle_;
  const Settings settings_;
  const core::Policy policy_;
  DataMaster* const data_;
  Deeds deeds_;
  Tryouts tryouts_;
  GangAdmission gangs_;
  std::map<Key, Entry> entries_;
  FairQueue<Key> begun_;  // jobs that have a status, or are gone
  FairQueue<Key> new_;    // the others: a turn makes all that they need
  std::set<std::pair<base::Time, Key>> timers_;
  base::Time now_;
};

}  // namespace backend::cluster
