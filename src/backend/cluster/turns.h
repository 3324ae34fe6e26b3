// The control loop of the operator: for each job, one turn at a time.
//
//   observe   from the collections, which are never older than what this process did
//   decide    core::Reconcile, the same function as on one machine; nothing else decides
//   publish   the status, by a patch that names the version that was decided on
//   perform   services before pods, deletions by UID, everything of one kind in parallel
//   release   the finalizers of pods whose ending is in the published status now
//
// A turn spans several answers of the server. What changes meanwhile asks for another turn. A turn
// that failed is not repaired: what it left undone is found again by the next, after a pause that
// grows while failures repeat. So it does not matter at which point this process dies.
//
// One thread. Requests go through the pacer; turns begin in Advance only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>

#include "backend/cluster/collection.h"
#include "backend/cluster/fair_queue.h"
#include "backend/cluster/objects.h"
#include "backend/cluster/pacer.h"
#include "backend/cluster/pod.h"
#include "backend/cluster/stored.h"
#include "core/reconcile.h"

namespace backend::cluster {

// What became of jobs, for those who count or tell it. Called for what was published only.
class Chronicle {
 public:
  virtual ~Chronicle() = default;
  virtual void Tell(const api::Job& job, const core::Event& event) = 0;
  virtual void Published(const api::JobStatus& before, const api::Job& after) = 0;
  virtual void Deleted(const api::Job& job) = 0;
  virtual void TurnOver(bool failed, base::Duration took) = 0;
};

struct Knowledge {
  Collection<StoredJob>& jobs;
  Collection<Pod>& pods;
  Collection<Service>& services;
};

class Turns {
 public:
  Turns(Knowledge knowledge, Pacer& pacer, Chronicle& chronicle, Settings settings);
  ~Turns();

  // Something changed for this job, or may have.
  void Wake(const Key& job);

  void Advance(base::Time now);
  // When Advance has something to do; nothing: when something has changed.
  std::optional<base::Time> next() const;

  size_t waiting() const { return queue_.size(); }
  size_t busy() const { return busy_; }

 private:
  struct Turn;
  struct Entry {
    bool queued = false;
    bool busy = false;
    bool again = false;    // something changed during the turn
    int32_t failures = 0;  // turns in a row
    // The job of this UID was read from, or written to, the server itself in our lifetime, so that
    // what the collection says is not from before it.
    std::string confirmed;
    kube::Version looked = 0;  // read again at this version, because pods were ahead of it
    std::string refusal;       // the server will never take its pods: why
    base::Time published;
    std::optional<base::Time> due;
    std::set<std::string> told;  // troubles of pods
  };
  using TurnPtr = std::shared_ptr<Turn>;
  using Then = void (Turns::*)(TurnPtr);

  void Queue(const Key& key, Entry& entry);
  void WakeAt(const Key& key, Entry& entry, base::Time when);
  void Begin(const Key& key, Entry& entry, base::Time now);
  void LetGo(const TurnPtr& turn);
  void TryOut(const TurnPtr& turn);
  void TriedOut(TurnPtr turn);
  void Publish(const TurnPtr& turn);
  void Published(TurnPtr turn);
  void Reread(const TurnPtr& turn);
  void Perform(const TurnPtr& turn);
  void StartPods(TurnPtr turn);
  void Over(TurnPtr turn);

  void Create(const TurnPtr& turn, std::string_view resource, const std::string& name,
              std::function<base::Json()> make);
  void LookAt(const TurnPtr& turn, bool pods, const std::string& path, const base::Error& taken);
  bool Learn(bool pods, const std::string& body);
  void Stop(const TurnPtr& turn, const Pod& pod, int64_t grace);
  void TookAway(const base::Json& object, const Pod& pod);
  void Release(const TurnPtr& turn, const Pod& pod);
  void DeleteService(const TurnPtr& turn, const Service& service);
  void DeleteJob(const TurnPtr& turn);
  void Delete(const TurnPtr& turn, std::string path, base::JsonObject options,
              std::function<void(const base::Json*)> done);
  void TellTroubles(const TurnPtr& turn, Entry& entry);

  // Sends a request of the turn.
  void Send(const TurnPtr& turn, Pacer::Make make,
            std::move_only_function<void(base::Result<kube::Response>)> answer);
  // Goes on with `then` when all that was sent has its answer.
  void Join(const TurnPtr& turn, Then then);

  Knowledge know_;
  Pacer& pacer_;
  Chronicle& chronicle_;
  const Settings settings_;
  const core::Policy policy_;
  std::map<Key, Entry> entries_;
  FairQueue<Key> queue_;
  std::set<std::pair<base::Time, Key>> timers_;
  std::unordered_set<size_t> tried_;  // pod templates that the server takes, by hash
  size_t busy_ = 0;
  base::Time now_;
  std::shared_ptr<bool> alive_;
};

}  // namespace backend::cluster
