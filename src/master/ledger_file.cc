#include "master/ledger_file.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

namespace master {
namespace {

using base::Result;

constexpr size_t kFrameHead = 8;
// A frame may be larger, but no answer should wait for so many others.
constexpr size_t kMostGroup = 4 << 20;
constexpr size_t kMostHeader = 64 << 10;

Result<std::string> ReadFrom(int fd, uint64_t offset, uint64_t end) {
  std::string bytes(end - offset, '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got =
        pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::FromErrno("read the ledger", errno);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Result<> WriteAll(Disk& disk, int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = disk.Write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return base::FromErrno("write the ledger", errno);
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

Result<> Sync(Disk& disk, int fd) {
  if (disk.Sync(fd) != 0) return base::FromErrno("sync the ledger", errno);
  return {};
}

struct State {
  ledger::Ledger ledger;
  uint64_t end = 0;          // of what is whole
  uint64_t snapshot_at = 0;  // where the reading began
};

Result<State> ReadState(const std::string& directory, const ledger::Job& job, int fd,
                        uint64_t size) {
  const std::string header = TRY(ReadFrom(fd, 0, std::min<uint64_t>(size, kMostHeader)));
  TRY(ledger::CheckHeader(job, header));
  const std::string path = directory + "/snapshot";
  if (const auto bytes = io::ReadFile(path)) {
    uint64_t offset = 0;
    auto ledger = ledger::Ledger::FromSnapshot(job, *bytes, &offset);
    // A snapshot that cannot be used is only a slower start.
    if (ledger && offset <= size) {
      const std::string log = TRY(ReadFrom(fd, offset, size));
      const size_t good = TRY(ledger->Continue(log, offset));
      return State{.ledger = std::move(*ledger), .end = offset + good, .snapshot_at = offset};
    }
    if (ledger)
      return base::Invalid(fmt::format(
          "the ledger is cut: {} bytes, and its snapshot was taken at {}", size, offset));
  }
  const std::string log = TRY(ReadFrom(fd, 0, size));
  size_t good = 0;
  auto ledger = TRY(ledger::Ledger::Replay(job, log, &good));
  return State{.ledger = std::move(ledger), .end = good, .snapshot_at = 0};
}

}  // namespace

ssize_t Disk::Write(int fd, const char* bytes, size_t size) { return write(fd, bytes, size); }
int Disk::Sync(int fd) { return fdatasync(fd); }

Result<LedgerFile::Opened> LedgerFile::Open(const std::string& directory, const ledger::Job& job,
                                            Options options) {
  TRY(io::MakeDirs(directory));
  auto lock = TRY_AS("another master has the ledger", io::Lock::TryTake(directory + "/lock"));
  const std::string path = directory + "/log";
  io::Fd log(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!log.valid()) return base::FromErrno("open " + path, errno);
  struct stat stat;
  if (fstat(log.get(), &stat) != 0) return base::FromErrno("open " + path, errno);
  const auto size = static_cast<uint64_t>(stat.st_size);
  State state = TRY_AS(path, ReadState(directory, job, log.get(), size));
  const bool is_new = state.end == 0;

  if (state.end < size && ftruncate(log.get(), static_cast<off_t>(state.end)) != 0)
    return base::FromErrno("cut off the torn end of " + path, errno);
  if (lseek(log.get(), static_cast<off_t>(state.end), SEEK_SET) < 0)
    return base::FromErrno("open " + path, errno);
  const uint64_t cut_off = size - state.end;
  if (is_new) {
    const std::string header = ledger::LogHeader(job);
    TRY(WriteAll(*options.disk, log.get(), header));
    state.end = header.size();
  }
  // The length, and the name in the directory, are as durable as what comes after.
  TRY(Sync(*options.disk, log.get()));
  const io::Fd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() || fsync(folder.get()) != 0)
    return base::FromErrno("sync " + directory, errno);

  std::unique_ptr<LedgerFile> file(new LedgerFile(directory, std::move(lock), std::move(log),
                                                  state.end, state.snapshot_at,
                                                  std::move(options)));
  return Opened{.file = std::move(file),
                .ledger = std::move(state.ledger),
                .is_new = is_new,
                .cut_off = cut_off};
}

LedgerFile::LedgerFile(std::string directory, io::Lock lock, io::Fd log, uint64_t end,
                       uint64_t snapshot_at, Options options)
    : directory_(std::move(directory)),
      lock_(std::move(lock)),
      log_(std::move(log)),
      options_(std::move(options)),
      begun_(end),
      snapshot_at_(snapshot_at),
      writer_([this] { Run(); }) {
  pthread_setname_np(writer_.native_handle(), "ledger");
}

LedgerFile::~LedgerFile() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  writer_.join();
}

void LedgerFile::Append(const ledger::Batch& batch, Then then) {
  {
    const std::lock_guard lock(mutex_);
    const bool closed = groups_.empty() || groups_.back().snapshot ||
                        groups_.back().batch.entries.size() + batch.entries.size() > kMostGroup;
    if (closed) groups_.emplace_back();
    groups_.back().batch.entries += batch.entries;
    if (then) groups_.back().thens.push_back(std::move(then));
    if (gathering_) return;
  }
  changed_.notify_one();
}

void LedgerFile::Gather(bool on) {
  {
    const std::lock_guard lock(mutex_);
    gathering_ = on;
    if (on || groups_.empty()) return;
  }
  changed_.notify_one();
}

uint64_t LedgerFile::SizeOf(const ledger::Batch& batch) {
  return batch.empty() ? 0 : kFrameHead + batch.entries.size();
}

uint64_t LedgerFile::NextOffset() const {
  const std::lock_guard lock(mutex_);
  uint64_t end = begun_;
  for (const Group& group : groups_) end += SizeOf(group.batch);
  return end;
}

bool LedgerFile::WantsSnapshot() const {
  return NextOffset() - snapshot_at_ >= options_.snapshot_every;
}

void LedgerFile::Snapshot(std::string snapshot) {
  snapshot_at_ = NextOffset();
  const std::lock_guard lock(mutex_);
  if (groups_.empty() || groups_.back().snapshot) groups_.emplace_back();
  groups_.back().snapshot = std::move(snapshot);
  changed_.notify_one();
}

void LedgerFile::Run() {
  for (;;) {
    Group group;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || (!groups_.empty() && !gathering_); });
      if (groups_.empty()) return;
      group = std::move(groups_.front());
      groups_.pop_front();
      begun_ += SizeOf(group.batch);
    }
    if (const auto done = Commit(group); !done) {
      if (options_.failed) options_.failed(done.error());
      return;
    }
    for (Then& then : group.thens) then();
  }
}

Result<> LedgerFile::Commit(const Group& group) {
  if (!group.batch.empty()) {
    TRY(WriteAll(*options_.disk, log_.get(), ledger::Framed(group.batch)));
    TRY(Sync(*options_.disk, log_.get()));
  }
  if (group.snapshot)
    base::IgnoreError(io::ReplaceFileDurably(directory_ + "/snapshot", *group.snapshot),
                      "without it the next start only takes longer");
  return {};
}

}  // namespace master
