// The line to the job's host: whole lists of members come in, the state of the data goes out
// (ledger/control.h).
//
// The host's messages are answered one by one. Unasked the master speaks when the data changed: at
// most every 200 ms, but at once when it matters (complete, misled, or shards to hand out where
// there were none). The line is also the master's life: when it closes, Serve returns.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "io/files.h"
#include "ledger/control.h"

namespace master {

class Master;

class HostLine {
 public:
  // Takes the socket over.
  static base::Result<std::unique_ptr<HostLine>> Open(int fd);

  // For Master::Options.
  void Changed(bool urgent);
  void Wake() const;

  // Until the host is gone, which is no error, or says what cannot be understood, which is one. One
  // thread; the master's clock ticks here as well.
  base::Result<> Serve(Master& master, uint16_t port);

 private:
  HostLine(io::Fd line, io::Fd wake) : line_(std::move(line)), wake_(std::move(wake)) {}

  base::Result<bool> Read(Master& master);
  base::Result<bool> Write();
  // Asks the master for its state, unless an answer is still to come.
  void Ask(Master& master, uint16_t port);

  const io::Fd line_;
  const io::Fd wake_;  // an eventfd
  std::string in_;     // of a line that is not whole yet
  std::string out_;
  int64_t seq_ = 0;            // of the host's last message
  std::vector<int64_t> owed_;  // its messages that wait for an answer
  base::Time last_;            // when the master was last asked

  std::mutex mutex_;
  bool changed_ = false, urgent_ = false;
  bool asking_ = false;
  std::string said_;  // lines that are to be sent
};

}  // namespace master
