// trainyard-server: what `trainyard serve` and `trainyard predict` become. Its one argument is JSON
// (serve/server.h, serve/client.h), checked and completed by them.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <malloc.h>

#include "base/json.h"
#include "io/signals.h"
#include "serve/client.h"
#include "serve/server.h"

namespace {

constexpr int kKeptMemory = 8 << 20;

// The signal to stop, once one has come; waits a while for it.
int WaitForSignal(base::Duration patience) {
  static int came = 0;
  if (came != 0) return came;
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (!io::IsIgnored(number)) sigaddset(&set, number);
  }
  const int64_t ns = std::chrono::nanoseconds(patience).count();
  const timespec time{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  const int number = sigtimedwait(&set, nullptr, &time);
  if (number > 0) came = number;
  return came;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "trainyard-server: started by trainyard serve, not by hand\n");
    return 2;
  }
  setenv("GRPC_VERBOSITY", "NONE", 0);  // what matters of it we say ourselves, in one line
  const auto json = base::ParseJson(argv[1]);
  if (json && base::Find(*json, "predict"))
    return serve::AskOnce(serve::QuestionFromJson(base::At(*json, "predict")));
  const auto options = json ? serve::OptionsFromJson(*json) : std::unexpected(json.error());
  if (!options) {
    fprintf(stderr, "trainyard: %s\n", options.error().text().c_str());
    return 2;
  }
  // Memory of one request is for the next, and not given back to be taken anew page by page.
  mallopt(M_MMAP_THRESHOLD, kKeptMemory / 2);
  mallopt(M_TRIM_THRESHOLD, kKeptMemory);
  // Before any thread is there, so that all have it: signals come to WaitForSignal and nowhere
  // else.
  sigset_t set;
  sigfillset(&set);
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) sigdelset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return serve::Serve(*options, WaitForSignal);
}
