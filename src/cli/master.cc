// `master`: keeps one job of one namespace, in a pod of its own: where there is no operator, and
// for the elastic TFJobs of one.
//
// It is the operator, of one job that is kept in a ConfigMap or, with --tfjob, is a TFJob; it ends
// when the job has, and nothing is left to do for it. If the job is elastic it also has the master
// of the job's data, a process beside it (cli/shard_master.h), whose ledger outlives both in the
// pod's volume.
#include <array>
#include <csignal>
#include <optional>

#include <fmt/core.h>
#include <poll.h>

#include "backend/cluster/config_map_jobs.h"
#include "backend/cluster/operator.h"
#include "backend/cluster/stored.h"
#include "cli/cluster.h"
#include "cli/cluster_audit.h"
#include "cli/commands.h"
#include "cli/elasticdl_master.h"
#include "cli/ledger_audit.h"
#include "cli/refuse.h"
#include "cli/settings.h"
#include "cli/shard_master.h"
#include "core/dialect.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/process.h"
#include "io/signals.h"
#include "kube/api.h"

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
  fmt::print(stderr, "{} {}\n", base::FormatTime(io::Wall()), text);
}

// Where the job is, and what it may use.
struct Post {
  Cluster& cluster;
  const Store store;
  const std::string name_space, job;
  const std::string ledger;  // a directory; empty: there is none
  const int stop;            // readable when we are to go

  bool Told() const {
    pollfd fd{.fd = stop, .events = POLLIN, .revents = 0};
    return poll(&fd, 1, 0) > 0;
  }
};

// A server that is away is waited for. kNotFound: there is no such job any more.
base::Result<api::Job> LoadJob(const Post& post) {
  const std::string path = kube::Path(api::kApiVersion, "tfjobs", post.name_space, post.job);
  std::string trouble;
  while (true) {
    const auto object = post.cluster.jobs(post.store).Get(path);
    if (object) {
      auto stored = backend::cluster::ReadJob(*object);
      if (!stored) return base::Invalid(post.job + " cannot be read");
      return *stored->value;
    }
    if (object.error().kind() == base::ErrorKind::kNotFound || post.Told())
      return std::unexpected(object.error());
    if (object.error().text() != trouble) Say("waiting: " + object.error().text());
    trouble = object.error().text();
    post.cluster.server().Poll(std::chrono::seconds(1));
  }
}

ShardMaster::Options DataOf(const Post& post, const api::Job& job, std::string program) {
  return {.program = std::move(program),
          .job = LedgerJob(job),
          .ledger = post.ledger,
          .log = post.ledger + "/master.log",
          .listen = "::",
          .port = core::kMasterPort};
}

// Something was handed out before, and what is not known any more: its volume went with a node.
std::vector<core::Event> LedgerLost(const Post& post, const api::Job& job) {
  if (!job.status.shards || io::Exists(post.ledger + "/log")) return {};
  return {{true, "LedgerLost",
           "what was handed out of the data is not known any more: all of it is handed out again"}};
}

// The master of the data beside the operator: what one has to say, the other hears.
class Data {
 public:
  Data(ShardMaster::Options options, std::vector<core::Event> first)
      : master_(std::move(options)), first_(std::move(first)) {}

  backend::DataMaster& master() { return master_; }
  pollfd Poll() const { return master_.Poll(); }

  void Advance(Operator& it, base::Time now) {
    const bool tended = master_.Tend(now), news = master_.Collect(now);
    // How far it is changes all the time, and is told now and then.
    const bool due = now >= told_ + std::chrono::seconds(1);
    std::vector<core::Event> events = master_.TakeEvents();
    if (it.synced()) events.insert(events.begin(), first_.begin(), first_.end());
    if (it.synced()) first_.clear();
    for (const core::Event& event : events) Say(event.reason + ": " + event.message);
    if (!tended && !news && !due && events.empty()) return;
    told_ = now;
    it.Hear(events);
  }
  base::Time next() const {
    return std::min(master_.look_again().value_or(base::Time::max()),
                    told_ + std::chrono::seconds(1));
  }

 private:
  ShardMaster master_;
  std::vector<core::Event> first_;  // told once there is a job to tell it of
  base::Time told_;
};

void WriteAudit(const Post& post, const api::Job& job) {
  auto audit = AuditLedger(LedgerJob(job), post.ledger);
  auto saved =
      audit ? SaveAudit(post.cluster, post.store, job, *audit) : std::unexpected(audit.error());
  if (!saved) Say("the audit cannot be written down: " + saved.error().text());
}

int Keep(const Post& post, const api::Job& job, const Args& args) {
  std::optional<Data> data;
  if (job.extensions.elastic) {
    if (post.ledger.empty()) return Refuse(post.job + " is elastic: --ledger DIR is needed");
    auto program = io::HelperProgram("trainyard-master");
    if (!program) return Fail(program.error());
    data.emplace(DataOf(post, job, *std::move(program)), LedgerLost(post, job));
  }
  Unobserved observer;
  backend::cluster::Settings settings = SettingsFrom(args);
  settings.until_end = post.store == Store::kTfJobs;
  if (post.store == Store::kConfigMaps) settings.owner_kind = "ConfigMap";
  Operator it(post.cluster.door(post.store),
              {.settings = std::move(settings),
               .name_space = post.name_space,
               .job = post.job,
               .data = data ? &data->master() : nullptr},
              observer);
  std::array<pollfd, 2> fds{{{.fd = post.stop, .events = POLLIN, .revents = 0}, {}}};
  std::string trouble;
  while (!(fds[0].revents & POLLIN)) {
    const base::Time now = io::Now();
    if (data) data->Advance(it, now);
    it.Advance(now);
    if (it.trouble() != trouble) {
      trouble = it.trouble();
      Say(trouble.empty() ? "all is well again" : "waiting: " + trouble);
    }
    if (it.rolled_back()) {
      Say("the data of the cluster was restored from a backup: ending, to be started again");
      return 1;
    }
    if (it.settled()) {
      if (data) WriteAudit(post, job);
      Say(post.job + " has ended");
      return 0;
    }
    base::Time next = it.next().value_or(now + std::chrono::minutes(1));
    if (data) next = std::min(next, data->next());
    fds[1] = data ? data->Poll() : pollfd{-1, 0, 0};
    post.cluster.server().Poll(std::max(next - io::Now(), base::Duration(0)), fds);
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
  const Post post{*cluster,
                  args.Has("tfjob") ? Store::kTfJobs : Store::kConfigMaps,
                  cluster->NamespaceOf(args),
                  args.operand(0),
                  args.Get("ledger"),
                  told.fd()};
  Say(fmt::format("trainyard master: job {} in namespace {}", post.job, post.name_space));
  const auto job = LoadJob(post);
  if (!job && job.error().kind() == base::ErrorKind::kNotFound) {
    Say(post.job + " is not there any more");
    return 0;
  }
  if (!job) return Fail(job.error());
  if (job->extensions.dialect == api::Dialect::kElasticDl) {
    if (const auto given = GiveToMaster(*cluster, *job); !given)
      Say("what is left of the job will not go with this pod: " + given.error().text());
  }
  return Keep(post, *job, args);
}

}  // namespace cli
