// A simulated machine, or a simulated cluster, with one training job in it.
//
// Time is virtual; replicas are actors that behave as TensorFlow does (they hang, follow each other
// into death, go on from checkpoints); what the controller may meet is drawn from a seed. The truth
// about every incarnation stays readable, so that checks can compare it with what was decided.
//
// One thread. The caller (life.h) owns the queue's loop.
#pragma once

#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/sim/random.h"

namespace backend::sim {

// How the replicas of the job depend on each other.
enum class Kind { kGang, kServers, kIndependent };

enum class What {
  kUp,
  kExit,
  kStopped,
  kVanish,
  kCollect,
  kShard,
  kHeard,
  kLeave,
  kSilent,
  kWorkDone,
  kFault,
  kUser,
  kTurn,
  kRestart,
  kCalm
};

struct Happening {
  base::Time at;
  uint32_t tie = 0;  // decides between two at one time
  uint32_t number = 0;
  What what = What::kTurn;
  int32_t subject = 0;  // an incarnation, where there is one
  int32_t value = 0;
  bool operator>(const Happening& other) const {
    return std::tie(at, tie, number) > std::tie(other.at, other.tie, other.number);
  }
};

struct Incarnation {
  core::ReplicaState state;
  bool live = true;
  bool gone = false;         // nobody can see it any more
  bool stop_asked = false;   // by the controller
  bool kill_asked = false;   // by it, without grace
  bool consequence = false;  // ended because of another
  bool observed = false;     // the controller has seen it, and finished that turn
  bool dying = false;        // its process does no work any more
  bool silenced = false;     // its node is lost: it ends when the cluster lets go of it
  int32_t shards = 0;        // that it has
  bool misled = false;       // takes something else for the end of the data
  bool stops_early = false;  // of its own accord
  bool unheard = false;      // has ended, and the master of the data does not know
  // As the controller last saw it.
  bool seen_live = true, seen_gone = false, seen_deleting = false, seen_silent = false;
};

// The data of a job of independent workers that take shards of it.
struct ShardCounts {
  int32_t total = 0;  // 0: the job has no such data
  int32_t todo = 0, doing = 0, done = 0;
  bool registered = false;
  bool complete() const { return registered && done == total; }
};

// What the checks want to know of. All called before the thing is done.
class Witness {
 public:
  virtual ~Witness() = default;
  virtual void Publishing(const api::JobStatus& status) = 0;
  virtual void Performing(const core::Action& action) = 0;
};

class World : public Backend {
 public:
  World(uint64_t seed, bool cluster);

  core::Observed Observe(const api::Job& job) override;
  base::Result<> Publish(const api::Job& job, const api::JobStatus& status,
                         const std::vector<core::Event>& events) override;
  base::Result<> Perform(const api::Job& job, const core::Action& action) override;

  // Wall time, which somebody may set. True time never jumps.
  base::Time Wall() const { return now + clock_offset; }
  // The controller's time: the wall time at its start, plus the time that has passed since.
  base::Time ControllerTime() const { return now + controller_offset; }
  // The time that replicas are dated with: by the kubelet, or by guards, who have the controller's.
  base::Time ReplicaTime() const {
    return cluster ? std::chrono::floor<std::chrono::seconds>(Wall()) : ControllerTime();
  }
  void Schedule(What what, base::Duration in, int32_t subject = 0, int32_t value = 0);
  // Lets the actor of this happening act. False: it is not the world's.
  bool Happen(const Happening& h);

  void End(Incarnation& one, int32_t code);
  void Kill(Incarnation& one, int32_t code, const std::string& disruption = "");
  void DeleteBySomebody(int32_t subject);
  // Its node is lost. The cluster notices that after a while, and later lets go of it.
  void Silence(int32_t subject);
  bool AnySilenced() const;
  void TakeAwayAll();
  std::vector<int32_t> Running() const;
  bool AnyLive() const;
  // What the controller was last shown.
  const core::Observed& view() const { return view_; }
  // Training goes on while all who are needed are up. To be called when either may have changed.
  void Advance();
  void Trace(const std::string& line);

  // The store: what survives a crash of the controller.
  api::Job stored;
  int32_t store_version = 0;
  bool deleted = false;

  Kind kind = Kind::kGang;
  base::Duration work{0};  // of the whole job, or of each independent worker
  ShardCounts data;
  bool lingers = false;  // peers of a gang that is done hang at their exit

  base::Time now;
  base::Duration clock_offset{0};
  base::Duration controller_offset{0};
  std::vector<Incarnation> all;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> queue;
  Random random;
  const bool cluster;

  // Faults that wait for their moment.
  int32_t crash_after = -1;  // so many calls from now the controller dies
  bool crashed = false;
  int32_t failing_publishes = 0;
  int32_t failing_actions = 0;
  int32_t stale_views = 0;

  bool changed = false;  // something happened that the controller is told of
  Witness* witness = nullptr;
  bool tracing = false;
  std::string trace;
  uint64_t digest = 14695981039346656037u;
  int32_t publishes = 0;
  int32_t steps = 0;

 private:
  bool CrashesHere();
  void Start(const core::Start& start);
  void Follow(const Incarnation& lost);
  void WorkDone(int32_t subject);
  void TakeShard(int32_t subject);
  bool TakesShards(api::ReplicaId id) const {
    return data.total > 0 && id.role == api::Role::kWorker;
  }
  bool IsGangMember(const core::ReplicaState& r) const;
  bool IsUp(api::ReplicaId id, std::optional<int32_t> attempt) const;
  std::vector<api::ReplicaId> Drivers() const;
  void Look();

  core::Observed view_;  // what was last shown
  bool progressing_ = false;
  base::Time progressing_since_;
  base::Duration saved_{0};
  int32_t epoch_ = 0;
  bool trained_ = false;
};

}  // namespace backend::sim
