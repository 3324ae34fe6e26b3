// The ledger on the disk: nothing is answered that is not there.
//
// Open reads what a directory has: `log`, append-only and kept whole, and `snapshot`, the state at
// some offset of it, which only makes the next Open quicker. A torn tail of the log, left by a
// crash in the middle of a write that nobody was answered for, is cut off.
//
// Append takes what a change of the ledger must have on the disk, and what to do once it is there.
// One thread writes: what arrives during one sync shares the next, in one frame. `then` runs on
// that thread, in the order of the Appends, each after all bytes appended before it are durable; so
// an answer that only rests on earlier changes is an Append of an empty batch.
//
// A write or sync that fails is the end: `failed` is called once, on the writing thread, and no
// `then` ever runs after it. (After a failed fsync the kernel may have dropped the pages, so trying
// again would prove nothing.) The program ends, and the next one reads what is really there.
//
// The directory is locked against a second master. Thread-safe, but the caller sees to it that
// batches are appended in the order in which they changed the ledger.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "io/files.h"
#include "ledger/ledger.h"

namespace master {

// What the file needs of the system: a seam for tests that let the k-th write or sync fail.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual ssize_t Write(int fd, const char* bytes, size_t size);
  virtual int Sync(int fd);
};

class LedgerFile {
 public:
  using Then = std::move_only_function<void()>;

  struct Options {
    uint64_t snapshot_every = 8 << 20;  // bytes of log
    std::shared_ptr<Disk> disk = std::make_shared<Disk>();
    std::function<void(const base::Error&)> failed;
  };

  struct Opened;
  // Makes the directory if there is none. Errors: a ledger of another job, a damaged one, one that
  // another master has.
  static base::Result<Opened> Open(const std::string& directory, const ledger::Job& job,
                                   Options options);

  // Writes what was appended before, runs what waits for it, and stops.
  ~LedgerFile();
  LedgerFile(const LedgerFile&) = delete;

  void Append(const ledger::Batch& batch, Then then);
  // Between Gather(true) and Gather(false) no write begins: what one thread has to append at about
  // the same time shares a sync, instead of the first of it having one of its own.
  void Gather(bool on);

  // So much was appended since the last snapshot that it is time for a new one.
  bool WantsSnapshot() const;
  // Where the log ends once all that was appended is written. True until the next Append.
  uint64_t NextOffset() const;
  // Takes a snapshot of the ledger at NextOffset. It is written when the log is durable up to
  // there.
  void Snapshot(std::string snapshot);

 private:
  // What is written and synced at once.
  struct Group {
    ledger::Batch batch;
    std::vector<Then> thens;
    std::optional<std::string> snapshot;  // the group is closed by it
  };

  LedgerFile(std::string directory, io::Lock lock, io::Fd log, uint64_t end, uint64_t snapshot_at,
             Options options);

  void Run();
  base::Result<> Commit(const Group& group);
  static uint64_t SizeOf(const ledger::Batch& batch);

  const std::string directory_;
  const io::Lock lock_;
  const io::Fd log_;
  const Options options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Group> groups_;  // not yet begun; the last one is open
  uint64_t begun_;            // the log's end when the groups that the writer has taken are written
  uint64_t snapshot_at_;      // offset of the last snapshot
  bool gathering_ = false;
  bool stopping_ = false;
  std::thread writer_;
};

struct LedgerFile::Opened {
  std::unique_ptr<LedgerFile> file;
  ledger::Ledger ledger;
  bool is_new = false;
  uint64_t cut_off = 0;  // bytes of a torn tail
};

}  // namespace master
