// Jobs as processes of this machine.
//
// One guard process a replica (guard/main.cc) keeps the promise that nothing outlives its
// supervisor. This class starts guards, hears from them over a socket each, and knows every
// incarnation: those that live, and those whose ending lies in the job's directory, written by
// their guards, so that a later supervisor finds them too.
//
// Threads: one. The owner polls the descriptors of PollSet() and calls Collect() when one is
// readable. Ownership: holds the job's lock; guards inherit it, so the directory counts as taken
// until the last one is gone.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "backend/backend.h"
#include "backend/local/gpus.h"
#include "backend/local/job_dir.h"
#include "backend/local/limits.h"
#include "backend/local/ports.h"
#include "backend/local/replica.h"
#include "base/result.h"
#include "io/files.h"

namespace backend::local {

class LocalBackend : public Backend {
 public:
  // `claim.lock` is the job's. Finds what earlier supervisors left, and leases ports and
  // GPUs.
  static base::Result<std::unique_ptr<LocalBackend>> Open(Claim claim, const api::Job& job);
  // Kills what still lives, at once.
  ~LocalBackend() override;

  core::Observed Observe(const api::Job& job) override;
  base::Result<> Publish(const api::Job& job, const api::JobStatus& status,
                         const std::vector<core::Event>& events) override;
  base::Result<> Perform(const api::Job& job, const core::Action& action) override;

  // Descriptors that become readable when a guard has something to say.
  std::vector<pollfd> PollSet() const;
  // Hears all guards that have something to say, and clears away what a killed guard left.
  void Collect();

  // Ends chiefs and workers with SIGABRT, so that Python prints where each thread is; `words` say
  // why.
  void AbortTraining(const std::string& words);

  bool AnyAlive() const;
  // Leases ports and GPUs for a job whose shape has changed; the ports of unchanged replicas stay.
  base::Result<> LeaseFor(const api::Job& job);

  // A child of ours that is no guard, and not one that a killed guard left either; 0: none.
  void Spare(pid_t child) { spared_ = child; }
  // Who inherits this holds the job's lock too.
  int lock_fd() const { return lock_.fd(); }
  // How long this incarnation may take to end once it is asked to.
  base::Duration GraceOf(api::ReplicaId id, int32_t attempt) const;

  // What the user should know and nothing rests on, since the last time: "the CPU limit is not
  // enforced".
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }
  // Whether a replica has ended without a process, so that nothing in PollSet reports it, since the
  // last call.
  bool TakeStartFailed() { return std::exchange(start_failed_, false); }

  void set_progress(api::Progress progress) { progress_ = std::move(progress); }
  const JobDir& dir() const { return dir_; }
  const RunFile& run() const { return run_; }

  struct Living {
    api::ReplicaId id;
    int32_t attempt = 0;
    pid_t guard = 0;
    pid_t program = 0;
    base::Time started;
  };
  std::vector<Living> LivingReplicas() const;

 private:
  struct Incarnation {
    api::ReplicaId id;
    int32_t attempt = 0;
    pid_t guard = 0;    // 0: ended
    pid_t program = 0;  // 0: not started yet
    io::Fd control;
    bool stop_sent = false;
    bool kill_sent = false;
    std::string aborted;  // why we sent SIGABRT
    base::Time started;
    Limits limits;
    std::string limits_by;
    std::vector<std::string> cgroups;
    int64_t grace_ms = 0;  // between SIGTERM and SIGKILL
    std::string heard;     // bytes from the guard, up to the last whole line
    std::optional<core::Ending> ending;
  };
  using Key = std::pair<api::ReplicaId, int32_t>;

  LocalBackend(Claim claim) : dir_(claim.dir), lock_(std::move(claim.lock)) {}

  base::Result<> LeasePorts(const api::Job& job);
  base::Result<> LeaseGpus(const api::Job& job);
  void Append(const std::vector<core::Event>& events) const;
  void FindEarlier(const api::Job& job);
  base::Result<> StartReplica(const api::Job& job, api::ReplicaId id, int32_t attempt);
  void StopReplica(Incarnation& incarnation, bool graceful);
  void Hear(Incarnation& incarnation, const std::string& line);
  void GuardGone(Incarnation& incarnation);
  void End(Incarnation& incarnation, core::Ending ending);
  void KillOrphans();
  core::Ending ReadEnding(const std::string& line, const Incarnation& incarnation) const;
  std::vector<std::string> LastLines(api::ReplicaId id) const;

  // Constant after Open.
  JobDir dir_;
  io::Lock lock_;
  std::string guard_program_;
  uint64_t users_descriptors_ = 0;  // the soft limit we were started with; 0: as it is
  EnvList env_file_;
  std::vector<std::string> environment_;  // that replicas inherit

  RunFile run_;
  std::map<api::ReplicaId, int32_t> ports_;
  PortLeases leases_;
  bool master_port_leased_ = false;
  GpuLeases gpu_leases_;
  std::map<api::ReplicaId, std::string> gpus_;  // CUDA_VISIBLE_DEVICES of each
  std::map<Key, Incarnation> incarnations_;
  pid_t spared_ = 0;
  api::Progress progress_;
  std::vector<std::string> notices_;
  bool start_failed_ = false;
  Enforcer enforcer_;
};

// Ends processes of a job that has neither supervisor nor guard any more: somebody killed all of
// them at one stroke. They are known by their environment. The caller holds the job's lock.
void EndStrays(const JobDir& dir);

// A line in a replica's log that Trainyard wrote, not the replica.
inline constexpr std::string_view kMark = "--- trainyard: ";

}  // namespace backend::local
