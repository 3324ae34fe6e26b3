// trainyard-master: the master of an elastic job's data, started by the job's host.
//
//   trainyard-master --ledger DIR --job NAME/UID --port P [--listen ADDRESS] [--control FD]
//                    [--minibatches N] [--seed N]
//
// The host holds the other end of the stream socket FD (3). The port is open before the first
// answer on it, and the program ends when it closes. Exit status: 0 then, 1 when the ledger cannot
// be written any more (start it again), 2 when it could not begin, 3 when another master still has
// the ledger (start it again when that is gone).
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/strings.h"
#include "master/host_line.h"
#include "master/master.h"
#include "master/server.h"

namespace {

constexpr int kFailed = 1, kRefused = 2, kLedgerTaken = 3;

struct Flags {
  std::string ledger;
  ledger::Job job;
  master::ServerOptions server;
  int control = 3;
};

base::Result<int64_t> Number(const std::string& flag, const std::string& text, int64_t most) {
  const auto number = base::ParseInt(text);
  if (number && *number >= 0 && *number <= most) return *number;
  return base::Invalid(fmt::format("{} {}: a number from 0 to {} is wanted", flag, text, most));
}

base::Result<Flags> Parse(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (i + 1 == argc) return base::Invalid(flag + " lacks its value");
    const std::string value = argv[i + 1];
    if (flag == "--ledger") {
      flags.ledger = value;
    } else if (flag == "--job") {
      const size_t slash = value.rfind('/');
      if (slash == std::string::npos) return base::Invalid("--job is NAME/UID");
      flags.job = {.uid = value.substr(slash + 1), .name = value.substr(0, slash)};
    } else if (flag == "--port") {
      flags.server.port = static_cast<uint16_t>(TRY(Number(flag, value, 65535)));
    } else if (flag == "--listen") {
      flags.server.host = value;
    } else if (flag == "--control") {
      flags.control = static_cast<int>(TRY(Number(flag, value, 1 << 20)));
    } else if (flag == "--minibatches") {
      flags.server.minibatches = static_cast<int32_t>(TRY(Number(flag, value, INT32_MAX)));
    } else if (flag == "--seed") {
      flags.server.seed = static_cast<uint64_t>(TRY(Number(flag, value, INT64_MAX)));
    } else {
      return base::Invalid("no flag is called " + base::OneLine(flag));
    }
  }
  if (flags.ledger.empty() || flags.job.name.empty() || flags.job.uid.empty())
    return base::Invalid(
        "--ledger and --job are needed: it is started by a job's host, not by hand");
  if (flags.server.minibatches < 1) return base::Invalid("--minibatches must be at least 1");
  return flags;
}

int Say(const base::Error& error, int status) {
  fprintf(stderr, "trainyard-master: %s\n", error.text().c_str());
  return status;
}

base::Result<master::LedgerFile::Opened> OpenLedger(const Flags& flags) {
  return master::LedgerFile::Open(flags.ledger, flags.job, {.failed = [](const base::Error& error) {
                                    // Nothing may be said any more, and nothing can be saved.
                                    _exit(Say(error, kFailed));
                                  }});
}

base::Result<> Run(const Flags& flags, master::LedgerFile::Opened opened) {
  const auto line = TRY(master::HostLine::Open(flags.control));
  master::Master master(std::move(opened), flags.ledger,
                        {.changed = [&line](bool urgent) { line->Changed(urgent); },
                         .wake = [&line] { line->Wake(); }});
  const auto server = TRY(master::Server::Listen(flags.server, master));
  return line->Serve(master, server->port());
}

}  // namespace

int main(int argc, char** argv) {
  // Debian's Abseil looks for deadlocks at every lock that gRPC takes, for a twentieth of our time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  setenv("GRPC_VERBOSITY", "NONE", 0);  // what matters of it we say ourselves, in one line
  // The end of a job is its host's to decide: a Ctrl-C that is meant for the host must not cut
  // calls.
  for (const int number : {SIGPIPE, SIGINT, SIGHUP}) signal(number, SIG_IGN);
  const auto flags = Parse(argc, argv);
  if (!flags) return Say(flags.error(), kRefused);
  auto opened = OpenLedger(*flags);
  if (!opened) {
    const bool taken = opened.error().kind() == base::ErrorKind::kTaken;
    return Say(opened.error(), taken ? kLedgerTaken : kRefused);
  }
  if (const auto ran = Run(*flags, *std::move(opened)); !ran) return Say(ran.error(), kRefused);
}
