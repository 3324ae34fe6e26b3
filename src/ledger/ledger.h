// Which records were handed out to whom, and which of them are done: the state of a job's data.
//
// A data set is cut into shards of equal size. A member (an incarnation of a replica, such as
// "worker-0@2") takes shards as leases and reports them. A shard whose member is gone, silent, or
// reports an error is handed out again; one that was reported with errors three times is put in
// quarantine; none is ever dropped. The boundaries and the order of the shards are a pure function
// of (size, shard size, seed, epoch), so only what is between the cursor and done is held: memory
// does not grow with what is done.
//
//   Batch batch;
//   auto leases = ledger.Take("iris", "worker-0@0", 1, now, batch);
//   // write Framed(batch) at the end of the log, sync, and only then answer
//
// Each function with a Batch changes the state and appends what must be on disk before anybody
// is told; replaying those bytes makes exactly the same change. If they cannot be written, the
// ledger in memory is ahead of its log: give it up and replay. Pure: no clock, no file, no thread;
// copies are independent. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "ledger/entry.h"
#include "ledger/log.h"

namespace ledger {

struct Lease {
  int32_t id = 0;  // > 0, and of no other lease that is out
  std::string set;
  int64_t epoch = 0;  // from 1
  int64_t index = 0;  // of the shard in the set: records [start, end)
  int64_t start = 0, end = 0;
  std::vector<int64_t> records;  // with shuffle_records: the numbers of its records

  bool operator==(const Lease&) const = default;
};

enum class Registered {
  kNew,
  kSame,
  kConflict,  // the set exists with other parameters; the first stay
};

enum class Reported {
  kDone,
  kLate,         // the lease had been taken back, but the shard was not done: it is now
  kDouble,       // the lease is over: reported already, by it or for it, or ended by a restore
  kReturned,     // with an error: the shard will be handed out again
  kQuarantined,  // with an error, for the third time: it will not
  kUnknown,      // no such lease was ever given
};

struct Standing {
  bool known = false;     // the set is registered
  bool complete = false;  // all its epochs are done (or quarantined)
  int64_t todo = 0;       // shards that could be handed out now, INT32_MAX for that many or more
  int64_t doing = 0;      // shards of the set that are out
  int64_t held = 0;       // shards of any set that this member has
  int64_t records_left = 0, records_total = 0;  // of all epochs; -1 for an endless set
  int32_t epoch = 0;                            // of the next shard that was never handed out
  int32_t epochs = 0;                           // 0: endless

  bool operator==(const Standing&) const = default;
};

struct SetView {
  SetParams params;
  int64_t epoch = 0;
  int64_t todo = 0, doing = 0, done = 0;        // shards of this epoch
  int64_t records_done = 0;                     // of all epochs
  int64_t records_left = 0, records_total = 0;  // as in Standing
  bool complete = false;
};

struct MemberView {
  std::string name;
  int32_t number = 0;
  bool here = false;  // joined, and did not leave
  int64_t doing = 0, done = 0, records_done = 0;
  double rate = 0;  // records per second, over its last shards
  base::Time last;  // when it was last heard
};

struct QuarantineView {
  std::string set;
  int64_t epoch = 0, start = 0, end = 0;
  std::string error;
};

class Ledger {
 public:
  static constexpr size_t kMostSets = 1000;
  static constexpr size_t kMostTaken = 1024;  // in one call
  // Errors until a shard is quarantined. Deaths never count.
  static constexpr int32_t kMostErrors = 3;
  // A member that was not heard for this long, and for this many times the slowest median time of
  // a shard, is silent.
  static constexpr base::Duration kLeastSilence = std::chrono::seconds(60);
  static constexpr int64_t kSilentTimes = 20;

  explicit Ledger(Job job) : job_(std::move(job)) {}

  // What the log says. *good is how much of it is whole: cut the file there, and when it is 0
  // begin it with LogHeader. Errors: a log of another job, damage (not a torn tail).
  static base::Result<Ledger> Replay(const Job& job, std::string_view log, size_t* good);

  // The state for a quicker restart, true for the first `offset` bytes of the log. Continue then
  // with the bytes from there on, which returns how many of them are whole.
  std::string Snapshot(uint64_t offset) const;
  static base::Result<Ledger> FromSnapshot(const Job& job, std::string_view snapshot,
                                           uint64_t* offset);
  base::Result<size_t> Continue(std::string_view log, uint64_t offset);

  // Only bad parameters, and too many sets, are an error.
  base::Result<Registered> Register(const SetParams& params, Batch& batch);

  // A member comes. Of one that is here already, nothing changes; one that left is here again.
  void Join(const std::string& member, int32_t number, base::Time now, Batch& batch);

  struct Left {
    int64_t returned = 0;  // shards that will be handed out again
    int64_t assumed = 0;   // shards that count as done: it succeeded after it was told the end
  };
  Left Leave(const std::string& member, bool succeeded, base::Time now, Batch& batch);

  // Up to `most` shards (and kMostTaken), those that came back first. None when there are none now,
  // or the member is not here.
  std::vector<Lease> Take(std::string_view set, const std::string& member, size_t most,
                          base::Time now, Batch& batch);

  // With an error the shard failed. (Told the error of a lease that is over, nothing changes.)
  Reported Report(int32_t lease, const std::string& error, base::Time now, Batch& batch);

  // The lease did not reach its member: the shard will be handed out again, and nobody is to blame.
  // False: it is not out. Should it be reported after all, that is a late report.
  bool GiveBack(int32_t lease, base::Time now, Batch& batch);

  // These leases of the set, which must all be this member's, are done, and `value` is kept under
  // `key` in the same stroke: what the model that has learned them was saved as. False: a lease is
  // not its own (any more), and nothing has changed. The value that is kept already is no change
  // either: the call is a repeated one. A Restore or Reset of the set forgets all keys. Errors: an
  // unknown set or member, a key or value that is too long or has control characters, too many
  // keys.
  base::Result<bool> Keep(std::string_view set, const std::string& member,
                          const std::vector<int32_t>& leases, const std::string& key,
                          const std::string& value, base::Time now, Batch& batch);
  // nullptr: nothing is kept under this key.
  const std::string* Kept(std::string_view set, const std::string& key) const;

  // To be noted before the member is told that no more shards of this set will come.
  void TellEnd(const std::string& member, std::string_view set, Batch& batch);
  // A call of this member was cut: it may have taken that for the end of the data.
  void Cut(const std::string& member, Batch& batch);
  // The master was away until now: all who are here may have taken that for the end of the data.
  // Nobody's silence meanwhile counts.
  void Away(base::Time now, Batch& batch);

  struct Expired {
    std::string member;
    int64_t shards = 0;
    base::Duration silence{0};
  };
  // Takes back the shards of silent members. A member is silent only by the measure of shards that
  // were reported: before the first report of a set there is no measure.
  std::vector<Expired> Expire(base::Time now, Batch& batch);
  base::Time NextExpiry() const;  // when Expire may find somebody; Time::max() for never
  // Volatile: the member is alive, though it neither took nor reported.
  void Heard(const std::string& member, base::Time now);

  // The state of a set as text, to be kept beside a model: JSON as ElasticDL 1.0.0 writes it, with
  // keys of our own. Empty for an unknown set.
  std::string Checkpoint(std::string_view set) const;
  // Puts the set that the checkpoint names back to it (theirs or ours), or makes it. Leases of the
  // set are over: the model that they went into is gone. `set` unless empty must be its name.
  base::Result<> Restore(std::string_view set, std::string_view checkpoint, Batch& batch);
  // All of the set is to be done again, from the first epoch on. False: no such set.
  bool Reset(std::string_view set, Batch& batch);

  Standing Look(std::string_view set, const std::string& member) const;
  // What this member has of this set, in the order in which it got it.
  std::vector<int32_t> LeasesOf(const std::string& member, std::string_view set) const;
  Lease LeaseAt(int32_t id) const;  // of one that is out
  struct Holder {
    std::string member, set;  // empty: the lease is not out
  };
  Holder HolderOf(int32_t lease) const;
  // Its report would change nothing: it is done, by itself or by another lease of the shard, or
  // void.
  bool IsOver(int32_t lease) const;
  // There is a set that is not endless, and all such are complete.
  bool Complete() const;
  // Members who ended with success, or are here and may, believing that there is no more data
  // though there is. Nobody once all is complete.
  std::vector<std::string> Misled() const;
  std::vector<SetView> Sets() const;
  std::vector<MemberView> Members() const;
  std::vector<QuarantineView> Quarantined() const;
  const Job& job() const { return job_; }

  // How many things are held in memory: leases, shards that came back, members and the like.
  size_t Held() const;

 private:
  friend class Auditor;

  static constexpr size_t kRecent = 15;  // reported shards that are remembered of a member

  struct Out {  // a lease that is out, or was taken back
    uint32_t set = 0;
    Shard shard;
    uint32_t member = 0;
    int64_t since = 0;
    int32_t errors = 0;  // of the shard, so far
  };
  struct Set {
    SetParams params;
    int64_t shards = 0;  // of one epoch
    Shard cursor;
    std::map<Shard, int32_t> due;                        // came back; with the errors so far
    std::map<Shard, int32_t> doing;                      // with the lease
    std::map<Shard, std::string> quarantined;            // with the last error
    std::multimap<Shard, int32_t> taken_back;            // leases of shards that are not done
    __int128 records_done = 0, records_quarantined = 0;  // endless sets add up
    std::map<std::string, std::string> kept;
  };
  struct Recent {  // a shard that was reported
    uint32_t set = 0;
    int64_t took = 0, when = 0, records = 0;
  };
  enum class Whereabouts : uint8_t { kHere, kSucceeded, kGone };
  struct Member {
    std::string name;
    int32_t number = 0;
    Whereabouts whereabouts = Whereabouts::kHere;
    bool cut = false;
    std::set<uint32_t> told_end;  // of these sets
    std::set<int32_t> leases;
    int64_t done = 0, records_done = 0;
    int64_t heard = 0;
    std::vector<Recent> recent;  // the last few, oldest first
  };

  void Commit(const Entry& entry, Batch& batch);
  // An entry that does not fit the state changes nothing and is an error.
  base::Result<> Apply(const Entry& entry);
  base::Result<> ApplyTake(const Entry& entry);
  base::Result<> ApplyReport(const Entry& entry);
  base::Result<> ApplyRestore(const Entry& entry);
  void Join(const Entry& entry);
  void Leave(const Entry& entry);
  void TakeBack(Member& member);
  void TakeBack(int32_t lease);  // and leaves it in the list of its member
  void Give(uint32_t set, Shard shard, uint32_t member, int64_t now, int32_t errors);
  void Finish(const Out& lease, int64_t now);
  void Settle(uint32_t set, Shard shard);
  void DropLeases(uint32_t set);
  int32_t NextId();

  const Set* FindSet(std::string_view name) const;
  const Member* FindMember(const std::string& name) const;
  uint32_t IndexOf(const Set& set) const { return static_cast<uint32_t>(&set - sets_.data()); }
  uint32_t IndexOf(const Member& member) const {
    return static_cast<uint32_t>(&member - members_.data());
  }

  static int64_t Capped(__int128 number, int64_t most) {
    return number > most ? most : static_cast<int64_t>(number);
  }
  static bool MoreEpochs(const Set& set);
  static bool IsComplete(const Set& set);
  static int64_t Fresh(const Set& set);  // shards from the cursor on that may be handed out now
  static int64_t IndexAt(const Set& set, Shard shard);
  static int64_t RecordsOf(const Set& set, Shard shard);
  static int64_t Passed(const Set& set);  // records of this epoch that lie before the cursor
  static int64_t RecordsLeft(const Set& set);
  static int64_t RecordsTotal(const Set& set);
  static Progress ProgressOf(const Set& set);
  static base::Result<Set> SetFrom(SetParams params, const Progress& progress);
  bool ReadMembers(ByteReader& reader);
  bool ReadLeases(ByteReader& reader, std::unordered_map<int32_t, Out>& leases);
  static base::Result<std::pair<SetParams, Progress>> FromCheckpoint(std::string_view text,
                                                                     const Ledger& ledger);
  Lease LeaseFrom(int32_t id, const Out& out) const;
  std::map<uint32_t, int64_t> SilenceBySet() const;
  int64_t SilenceOf(const Member& member, const std::map<uint32_t, int64_t>& by_set) const;

  Job job_;
  std::vector<Set> sets_;
  std::vector<Member> members_;
  std::unordered_map<std::string, uint32_t> member_index_;
  std::unordered_map<int32_t, Out> out_;
  std::unordered_map<int32_t, Out> taken_back_;
  int32_t next_id_ = 1;
  bool wrapped_ = false;
  std::vector<int32_t> given_;  // by the last Take
};

}  // namespace ledger
