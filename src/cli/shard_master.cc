#include "cli/shard_master.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>
#include <tuple>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strings.h"
#include "io/clock.h"
#include "io/process.h"

namespace cli {
namespace {

using base::Duration;
using base::Time;
using ledger::MemberState;
using namespace std::chrono_literals;

constexpr Duration kFirstPause = 100ms;  // doubled up to kLongestPause
constexpr Duration kLongestPause = 5s;
// So many starts without an answer: the next will not do better.
constexpr int32_t kMostFailures = 5;
// Its exit status while another master has the ledger (master_main.cc): one that a node which
// nobody hears of still runs, and that is waited for.
constexpr int kLedgerTaken = 3;
// It answers within milliseconds unless the disk stands still.
constexpr Duration kPatience = 60s;
// How long it may take to write its last words when we are done with it.
constexpr int kLeaveMs = 5000;
constexpr size_t kTail = 4 << 10;

// What a list of members was made of, for comparison.
std::map<std::string, MemberState> ByName(const std::vector<ledger::HostMember>& members) {
  std::map<std::string, MemberState> out;
  for (const ledger::HostMember& member : members) out[member.name] = member.state;
  return out;
}

// The parts of a report that decisions rest on. How many there are of each changes all the time.
auto Deciding(const ledger::DataReport& data) {
  return std::tuple(data.registered, data.complete, data.todo > 0, data.doing > 0,
                    std::set<std::string>(data.misled.begin(), data.misled.end()));
}

// The status of a process that is about to end, by force after that time.
int EndOf(pid_t pid, int milliseconds) {
  int status = 0;
  for (int waited = 0; waitpid(pid, &status, WNOHANG) == 0; waited += 10) {
    if (waited >= milliseconds) kill(pid, SIGKILL);
    poll(nullptr, 0, 10);
  }
  return status;
}

std::string HowItEnded(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  const char* name = sigabbrev_np(WTERMSIG(status));
  return fmt::format("was killed by SIG{}", name ? name : "?");
}

}  // namespace

ShardMaster::~ShardMaster() {
  if (!pid_) return;
  control_.reset();
  EndOf(pid_, kLeaveMs);
}

void ShardMaster::Tell(std::vector<ledger::HostMember> members) {
  std::ranges::sort(members, {}, &ledger::HostMember::name);
  if (told_ && members == members_) return;
  members_ = std::move(members);
  told_ = false;
  if (pid_) Send(io::Now());
}

void ShardMaster::Send(Time now) {
  told_ = true;
  sent_.push_back({++seq_, now, ByName(members_)});
  unsent_ += ledger::Encode(ledger::HostMessage{.seq = seq_, .members = members_});
  Flush();
}

// What does not fit now goes when the socket has room again.
void ShardMaster::Flush() {
  while (!unsent_.empty()) {
    const ssize_t size =
        send(control_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;  // full, or gone: then its end is read soon
    unsent_.erase(0, static_cast<size_t>(size));
  }
}

bool ShardMaster::Knows(const std::string& member, MemberState state) const {
  const auto it = known_.find(member);
  return it != known_.end() && it->second == state;
}

pollfd ShardMaster::Poll() const {
  const short events = static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT);
  return {control_.get(), events, 0};
}

bool ShardMaster::Collect(Time now) {
  if (!pid_) return false;
  Flush();
  const auto before = Deciding(data_);
  bool answered = false;
  while (true) {
    char buffer[16 << 10];
    const ssize_t size = recv(control_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (size <= 0) {
      Gone(now);
      return true;
    }
    heard_.append(buffer, static_cast<size_t>(size));
    size_t from = 0;
    for (size_t end; (end = heard_.find('\n', from)) != std::string::npos; from = end + 1) {
      answered |= Hear(heard_.substr(from, end - from));
    }
    heard_.erase(0, from);
  }
  return answered || Deciding(data_) != before;
}

// True: it has answered something that it was told.
bool ShardMaster::Hear(const std::string& line) {
  auto message = ledger::DecodeMasterMessage(line);
  if (!message) {
    events_.push_back({true, "MasterUnclear", "the master said: " + message.error().text()});
    return false;
  }
  data_ = std::move(message->data);
  for (ledger::EventReport& event : data_.events) {
    events_.push_back({event.warning, std::move(event.reason), std::move(event.message)});
  }
  data_.events.clear();
  bool answered = false;
  while (!sent_.empty() && sent_.front().seq <= message->seq) {
    known_ = std::move(sent_.front().members);
    sent_.pop_front();
    answered = true;
  }
  if (answered) failures_ = 0;
  return answered;
}

bool ShardMaster::Tend(Time now) {
  if (!pid_) return now >= not_before_ && broken_.empty() && !Launch(now);
  if (sent_.empty() || now < sent_.front().when + kPatience) return false;
  events_.push_back({true, "MasterSilent", "the master of the data does not answer"});
  kill(pid_, SIGKILL);
  Gone(now);
  return true;
}

// False: it cannot be started at all.
bool ShardMaster::Launch(Time now) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    broken_ = base::FromErrno("socketpair", errno).error().text();
    return false;
  }
  control_ = io::Fd(pair[0]);
  const io::Fd theirs(pair[1]);
  const io::Fd log(open(options_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  std::vector<int> extra{theirs.get()};
  if (options_.lock >= 0) extra.push_back(options_.lock);
  const auto started =
      io::Start({.argv = {options_.program, "--job", options_.job.name + "/" + options_.job.uid,
                          "--ledger", options_.ledger, "--listen", options_.listen, "--port",
                          std::to_string(options_.port)},
                 .env = io::Environment(),
                 .output = log.get(),
                 .extra = std::move(extra)});
  if (!started) {
    broken_ = started.error().text();
    return false;
  }
  pid_ = *started;
  if (++starts_ > 1) events_.push_back({false, "MasterRestarted", "the master is started again"});
  Send(now);
  return true;
}

void ShardMaster::Gone(Time now) {
  control_.reset();
  const int status = EndOf(pid_, kLeaveMs);
  heard_.clear();
  unsent_.clear();
  sent_.clear();
  known_.clear();
  told_ = false;
  pid_ = 0;
  Duration pause = kFirstPause;
  for (int32_t i = 1; i < failures_ && pause < kLongestPause; ++i) pause *= 2;
  not_before_ = failures_ == 0 ? now : now + std::min(pause, kLongestPause);
  std::string words = "the master " + HowItEnded(status);
  // One that ends by itself says why.
  if (const std::string last = LastWords(); !WIFSIGNALED(status) && !last.empty()) {
    words += ": " + last;
  }
  events_.push_back({true, "MasterLost", words});
  const bool waits = WIFEXITED(status) && WEXITSTATUS(status) == kLedgerTaken;
  if (++failures_ >= kMostFailures && !waits) broken_ = words;
}

std::string ShardMaster::LastWords() const {
  const auto tail = io::ReadTail(options_.log, kTail);
  if (!tail) return "";
  std::string_view text = base::Trim(*tail);
  return std::string(text.substr(text.rfind('\n') + 1));
}

std::optional<Time> ShardMaster::look_again() const {
  if (!broken_.empty()) return std::nullopt;
  if (!pid_) return not_before_;
  if (sent_.empty()) return std::nullopt;
  return sent_.front().when + kPatience;
}

}  // namespace cli
