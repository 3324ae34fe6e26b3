// Where jobs live, this machine or a cluster, behind one face: each verb is written once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/args.h"
#include "cli/log_tail.h"

namespace cli {

// A job as it is now.
struct Standing {
  api::Job job;  // with its status
  // Somebody keeps it, or something of it still runs.
  bool alive = false;
  std::string queue = {};  // that holds it back; empty: none does
};

// What a replica uses at the moment.
struct Used {
  double cpu_percent = 0;
  int64_t memory = 0;
  std::optional<api::Share> sharing = {};
};

// What a job leaves behind, as the ending tells it. Empty: nothing to tell.
struct Kept {
  std::string model;       // where the newest exported model lies
  std::string checkpoint;  // "checkpoint ckpt-3 in /…/checkpoints"
  std::string logs;        // where its logs lie
  std::string next;        // a command worth typing after a success
  std::string again;       // what a command must say to mean the same place: " --on kubernetes"
};

// What is wrong with a job that has not ended, and what to do about it.
struct Trouble {
  std::string what;  // "worker/0 cannot be scheduled: 0/1 nodes are available: …"
  std::string fix;   // may be empty
};

struct LogWish {
  std::vector<api::ReplicaId> replicas;  // of those that there are
  std::optional<base::Time> since;
  bool follow = false;
  std::optional<int64_t> tail;  // only the last lines are of use: so many of each replica
};

// The log lines of a job's replicas, as they come.
class LogSource {
 public:
  virtual ~LogSource() = default;
  // All that is there, in the order in which it was printed. When nothing is, waits a moment.
  virtual base::Result<std::vector<TimedChunk>> Read() = 0;
  // Lines before the first that Read returns were left out because of `tail`.
  virtual bool skipped() const { return false; }
  // Nothing more will come.
  virtual bool ended() const = 0;
};

class PlacedJob {
 public:
  PlacedJob(std::string name_space, std::string name)
      : name_space_(std::move(name_space)), name_(std::move(name)) {}
  virtual ~PlacedJob() = default;

  const std::string& name_space() const { return name_space_; }
  const std::string& name() const { return name_; }

  virtual base::Result<Standing> Look() = 0;
  // What happened, oldest first: objects with time, type, reason and message.
  virtual base::Result<std::vector<base::Json>> Events() = 0;
  virtual base::Result<std::vector<Trouble>> Troubles(const Standing& standing) = 0;
  virtual Kept WhatIsKept(const api::Job& job) = 0;

  // Those that have or had a log.
  virtual base::Result<std::vector<api::ReplicaId>> WithLogs() = 0;
  virtual base::Result<std::unique_ptr<LogSource>> OpenLogs(const LogWish& wish) = 0;
  // Of the replicas that live, measured over a second or so. kUnavailable: it does not run.
  virtual base::Result<std::map<api::ReplicaId, Used>> Measure() = 0;

  // How often each record was reported, as AuditInJson has it. kInvalid: it is not elastic.
  virtual base::Result<base::Json> Audit() = 0;

  // The caller has checked that it has not ended and that the change makes sense.
  virtual base::Result<> Scale(api::Role role, int32_t count) = 0;
  virtual base::Result<> Suspend() = 0;
  virtual base::Result<> Stop(const std::string& by) = 0;
  // Until nothing of it runs and, unless it is suspended, it has ended; false: not in time.
  virtual base::Result<bool> WaitUntilOver(std::optional<base::Time> until) = 0;
  // Whether Delete takes a job that still runs; else it is stopped first.
  virtual bool DeleteEndsIt() const { return false; }
  // Its records, and with `with_output` also what it made. Says what stays.
  virtual base::Result<std::vector<std::string>> Delete(bool with_output) = 0;

 private:
  std::string name_space_;
  std::string name_;
};

struct Listing {
  std::string name_space;
  std::string name;
  api::JobStatus status;
  bool alive = false;
  std::string queue = {};  // that holds it back; empty: none does
  std::string waits_for = {};  // why it does not start; empty: it does, or nothing is known
};

class Place {
 public:
  virtual ~Place() = default;
  // The namespace that a command line means.
  virtual std::string NamespaceOf(const Args& args) const = 0;
  // Of one namespace, or of all with an empty name, by name.
  virtual base::Result<std::vector<Listing>> List(const std::string& name_space) = 0;
  // The job of this name, or the latest when the name is empty. kNotFound names the nearest.
  virtual base::Result<std::unique_ptr<PlacedJob>> Find(const std::string& name_space,
                                                        const std::string& name) = 0;
  // One of which only the output is left.
  virtual base::Result<std::unique_ptr<PlacedJob>> FindRemains(const std::string& name_space,
                                                               const std::string& name) = 0;
};

// As --on and TRAINYARD_ON say.
base::Result<std::unique_ptr<Place>> PlaceOf(const Args& args);

// The job that a command line means: `name`, by default its first operand.
base::Result<std::unique_ptr<PlacedJob>> FindJob(Place& place, const Args& args,
                                                 const std::string& name);
// The same, place included, for verbs that need no more of it.
struct FoundJob {
  std::unique_ptr<Place> place;
  std::unique_ptr<PlacedJob> job;
};
base::Result<FoundJob> FindJob(const Args& args);

// "no job named x in namespace y: did you mean z?"
base::Error NoSuchJob(const std::string& name_space, const std::string& name,
                      const std::vector<std::string>& names);

// Who types: for "stopped by …".
std::string UserName();

}  // namespace cli
