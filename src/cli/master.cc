// `master`: keeps one job of one namespace, in a pod of its own, where there is no operator.
//
// It is the operator, of one job that is kept in a ConfigMap; it ends when the job has, and nothing
// is left to do for it.
#include <csignal>

#include <fmt/core.h>
#include <poll.h>

#include "backend/cluster/config_map_jobs.h"
#include "backend/cluster/operator.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/refuse.h"
#include "io/clock.h"
#include "io/signals.h"

namespace cli {
namespace {

using backend::cluster::Operator;

class Unobserved : public Operator::Observer {
 public:
  void Published(const api::JobStatus&, const api::Job&) override {}
  void Deleted(const api::Job&) override {}
  void TurnOver(bool, base::Duration) override {}
};

void Say(const std::string& text) {
  fmt::print(stderr, "{} {}\n", base::FormatTime(io::Now()), text);
}

int Keep(Cluster& cluster, const std::string& name_space, const std::string& job,
         const io::Signals& told) {
  Unobserved observer;
  Operator it(cluster.door(Store::kConfigMaps), {.name_space = name_space, .job = job}, observer);
  pollfd stop{.fd = told.fd(), .events = POLLIN, .revents = 0};
  std::string trouble;
  while (!(stop.revents & POLLIN)) {
    const base::Time now = io::Now();
    it.Advance(now);
    if (it.trouble() != trouble) {
      trouble = it.trouble();
      Say(trouble.empty() ? "all is well again" : "waiting: " + trouble);
    }
    if (it.settled()) {
      Say(job + " has ended");
      return 0;
    }
    const base::Time next = it.next().value_or(now + std::chrono::minutes(1));
    cluster.server().Poll(std::max(next - io::Now(), base::Duration(0)), {&stop, 1});
  }
  // Asked to go before the job has ended: whoever asked starts another.
  Say("stopped");
  return 1;
}

}  // namespace

int MasterCommand(const Args& args) {
  if (args.operands().empty()) return Refuse("which job? usage: trainyard master JOB -n NAMESPACE");
  const io::Signals told({SIGINT, SIGTERM});
  auto context = ContextOf(args, "kubernetes");
  if (!context) return Refuse(context.error());
  if (!*context) return Refuse("master is for clusters: --on kubernetes");
  auto cluster = Cluster::Connect(**context);
  if (!cluster) return Fail(cluster.error());
  const std::string space = cluster->NamespaceOf(args);
  Say(fmt::format("trainyard master: job {} in namespace {}", args.operand(0), space));
  return Keep(*cluster, space, args.operand(0), told);
}

}  // namespace cli
