// The master of a job's data: who asks, what it gets, and what the job's host is told.
//
// Between the gRPC services (elastic_service.h, shards_service.h), which know the protocols, and
// the ledger, which knows the data, stands what neither does: which numbers are members of this job
// and which of them live, calls that are held until there is something to say, what a cut call
// means, points where workers wait for each other, and events.
//
// Every change goes into the ledger's file before anybody hears of it: answers are functions that
// run on the file's thread once what they rest on is durable. They run without a lock, each exactly
// once. All functions may be called from any thread and return at once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "ledger/control.h"
#include "ledger/ledger.h"
#include "master/ledger_file.h"
#include "master/syncs.h"

namespace master {

// Who asks for which shards.
struct Ask {
  int32_t number = 0;
  std::string set;
  size_t most = 1;
  // Our own client says what it has, can be told to wait or to drain, and asks again. The published
  // ones can only be given a shard or the end.
  bool ours = false;
  std::vector<int32_t> holding;
};

struct Taken {
  enum class Next {
    kTaken,
    kWait,       // ours only
    kDrain,      // ours only
    kEnd,        // all is done; or to a published client: it holds what is left, or is to leave
    kDenied,     // not of this job
    kNoSet,      // ours only: nobody registered it
    kCancelled,  // by Cancel
  };
  Next next = Next::kEnd;
  std::vector<ledger::Lease> leases;
  int32_t task_type = 1;
  bool leaving = false;
  std::string text;  // of a refusal
};

struct Reports {
  std::vector<int32_t> done;
  std::vector<std::pair<int32_t, std::string>> failed;
  std::vector<int32_t> holding;  // what else the client has; ours only
};

struct Counts {
  int32_t counted = 0, already = 0, unknown = 0;
  std::vector<int32_t> over;  // of `holding`
};

class Master {
 public:
  struct Options {
    base::Duration introduction = std::chrono::seconds(10);  // for the host to name a number
    base::Duration longest_hold = std::chrono::seconds(20);  // of our own client
    std::function<base::Time()> now;                         // the wall clock unless given
    // Both are called with a lock held, and may only wake somebody.
    std::function<void(bool urgent)> changed = [](bool) {};  // there is something to Report
    std::function<void()> wake = [] {};                      // NextTick may be earlier
  };

  // What Open of the file gave. `directory` keeps the synchronisation points as well.
  Master(LedgerFile::Opened opened, std::string directory, Options options);
  ~Master();

  // The host said who is there. Calls of those who are gone end here, their shards go back.
  void Heed(const ledger::HostMessage& message);
  // The state of the data and the events since the last one, when durable.
  void Report(std::function<void(ledger::DataReport)> answer);
  // Ends what waited for too long.
  void Tick();
  base::Time NextTick() const;

  // Held until there is an answer; its ticket is for Cancel.
  uint64_t Take(Ask ask, std::function<void(Taken)> answer);
  // The client is gone or gave up: a held call is answered kCancelled.
  void Cancel(uint64_t ticket);
  // The answer with these leases did not reach the member: they go back, and it may believe
  // anything.
  void Lost(int32_t number, const std::vector<int32_t>& leases);

  void Report(Reports reports, std::function<void(Counts)> answer);
  // The parameters in force, which are not the given ones if others were there first.
  void Register(const ledger::SetParams& params,
                std::function<void(base::Result<ledger::SetParams>)> answer);
  void Restore(const std::string& set, const std::string& checkpoint,
               std::function<void(base::Result<>)> answer);
  void Reset(const std::string& set, std::function<void(bool known)> answer);
  // As ledger::Ledger::Keep, for the member of this number; and what is kept.
  void Keep(int32_t number, const std::string& set, const std::vector<int32_t>& leases,
            const std::string& key, const std::string& value,
            std::function<void(base::Result<bool>)> answer);
  void Kept(const std::string& set, const std::string& key,
            std::function<void(std::optional<std::string>)> answer);
  void Checkpoint(const std::string& set, std::function<void(std::string)> answer);
  void Look(int32_t number, const std::string& set, std::function<void(ledger::Standing)> answer);

  // Ready or not; nothing for a number that is not of this job.
  void WorkerSync(const std::string& name, int32_t number,
                  std::function<void(std::optional<bool>)> answer);
  void WaitSync(const std::string& name, bool notify, std::function<void(bool)> answer);
  void DeleteSync(const std::string& name, bool all, std::function<void()> answer);

  // As LedgerFile::Gather.
  void Gather(bool on) { file_->Gather(on); }

  // Calls that wait.
  size_t Held() const;
  // Whether a number may ask: it is of a member that lives.
  bool Serves(int32_t number) const;
  void Heard(int32_t number);
  // One event for each `key`, however often.
  void Once(const std::string& key, const std::string& reason, const std::string& message);
  // From now on cut calls are of our own making.
  void Stop();

 private:
  struct Member {
    std::string name;
    ledger::MemberState state = ledger::MemberState::kLive;
  };
  struct Waiting {
    Ask ask;
    base::Time since;
    std::function<void(Taken)> answer;
  };
  // One change under the lock, and what is to be said when it is durable.
  struct Turn {
    base::Time now;
    ledger::Batch batch;
    std::vector<LedgerFile::Then> thens;
    bool urgent = false;  // somebody may be misled who was not
  };
  struct Pulse {
    bool complete = false, todo = false;
    bool operator==(const Pulse&) const = default;
  };

  Turn Begin() const;
  void End(Turn& turn);
  // The answer to a call, or nothing if it is to be held.
  std::optional<Taken> Try(const Ask& ask, base::Time since, Turn& turn);
  std::optional<Taken> TryNone(const Member& member, const Ask& ask, base::Time since, Turn& turn);
  std::optional<Taken> TryUnknown(const Ask& ask, base::Time since, const Turn& turn);
  std::vector<ledger::Lease> LostOnTheWay(const std::string& member, const Ask& ask);
  void TellEnd(const std::string& member, const std::string& set, Turn& turn);
  void Answer(Waiting& waiting, Taken taken, Turn& turn);
  void ServeWaiting(Turn& turn);
  base::Time DeadlineOf(const Waiting& waiting) const;
  void Depart(const std::string& name, bool succeeded, Turn& turn);
  void Settle(int32_t lease, const std::string& error, Counts& counts, Turn& turn);
  void GiveBack(int32_t lease, Turn& turn);
  Pulse PulseOf() const;
  const Member* Find(int32_t number) const;
  void NoteSets();
  static std::string Quoted(std::string_view text);  // what a client sent may be anything
  static std::string Shards(int64_t count);
  std::set<int32_t> Workers() const;
  void SaveSyncs() const;
  void Event(std::string reason, std::string message, bool warning = true);
  void EventOnce(const std::string& key, const std::string& reason, const std::string& message);

  const std::string directory_;
  const Options options_;

  mutable std::mutex mutex_;
  ledger::Ledger ledger_;
  std::map<std::string, int32_t> sets_;          // their task types
  std::unordered_map<int32_t, Member> members_;  // by number; all that the host named last
  std::map<uint64_t, Waiting> waiting_;          // by ticket, so the longest waiting first
  uint64_t next_ticket_ = 1;
  // Leases that were out when the master was away: the answer with the last one, or with the last
  // one before an earlier absence, may not have arrived. A published client gets to its shards in
  // order, so a report of a later one tells; what is still doubtful when its member ends goes back.
  std::map<int32_t, std::string> doubtful_;
  Syncs syncs_;
  std::vector<ledger::EventReport> events_;
  std::set<std::string> once_;
  Pulse pulse_;
  bool dirty_ = false;  // the host was not told yet
  bool stopping_ = false;
  std::unique_ptr<LedgerFile> file_;  // last: its thread ends before the rest does
};

}  // namespace master
