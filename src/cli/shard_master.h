// The master of an elastic job's data, as its host has it: a program of its own
// (libexec/trainyard-master) on the other end of a socket.
//
// The host tells it who is there, always all of it; it answers how far the data is
// (ledger/control.h). If it dies it is started again on the same port with the same ledger, and
// told all of it again. It ends when its socket closes, so it never outlives its host.
//
// Threads: one. The owner polls Poll() and calls Collect() when that is ready, and Tend() when
// look_again() has come.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "backend/members.h"
#include "base/time.h"
#include "core/reconcile.h"
#include "io/files.h"
#include "ledger/control.h"
#include "ledger/log.h"

namespace cli {

class ShardMaster : public backend::DataMaster {
 public:
  struct Options {
    std::string program;
    ledger::Job job;
    std::string ledger;  // the directory
    std::string log;     // the file that takes what it prints
    std::string listen = "127.0.0.1";
    int32_t port = 0;
    int lock = -1;  // of the job: inherited, so nobody takes the job over while the master lives
  };

  explicit ShardMaster(Options options) : options_(std::move(options)) {}
  ~ShardMaster() override;
  ShardMaster(const ShardMaster&) = delete;
  ShardMaster& operator=(const ShardMaster&) = delete;

  // Who is there now. Said once, and again to a master that was started since.
  void Tell(std::vector<ledger::HostMember> members) override;
  // Of the master that lives now.
  bool Knows(const std::string& member, ledger::MemberState state) const override;

  pollfd Poll() const;
  // Takes what it has to say. True: something that decisions rest on has changed.
  bool Collect(base::Time now);
  // Starts it if it is not there and its pause is over; ends one that does not answer. True as
  // with Collect.
  bool Tend(base::Time now);
  std::optional<base::Time> look_again() const;

  const ledger::DataReport& data() const override { return data_; }
  pid_t pid() const { return pid_; }
  // Since the last time.
  std::vector<core::Event> TakeEvents() { return std::exchange(events_, {}); }
  const std::string& broken() const override { return broken_; }

 private:
  struct Sent {
    int64_t seq = 0;
    base::Time when;
    std::map<std::string, ledger::MemberState> members;
  };

  bool Launch(base::Time now);
  void Send(base::Time now);
  void Flush();
  bool Hear(const std::string& line);
  void Gone(base::Time now);
  std::string LastWords() const;

  const Options options_;
  std::vector<ledger::HostMember> members_;
  bool told_ = false;  // members_ were sent to the master that lives

  pid_t pid_ = 0;  // 0: it is not there
  io::Fd control_;
  std::string heard_, unsent_;
  std::deque<Sent> sent_;  // not answered yet
  std::map<std::string, ledger::MemberState> known_;
  int64_t seq_ = 0;
  ledger::DataReport data_;

  int32_t failures_ = 0;  // in a row, without an answer in between
  int32_t starts_ = 0;
  base::Time not_before_;
  std::vector<core::Event> events_;
  std::string broken_;
};

}  // namespace cli
