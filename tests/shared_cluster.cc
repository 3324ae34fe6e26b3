#include "shared_cluster.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "controller/step.h"
#include "core/elastic.h"

namespace makespan {

using api::Role;
using base::Duration;
using base::Result;
using base::Time;
using namespace std::chrono_literals;

namespace {

constexpr Time kBegin{1'800'000'000s};
constexpr int64_t kShardSize = 64;
constexpr const char* kSet = "train";

// From its place to its first line: pulling nothing, importing TensorFlow.
constexpr std::pair<Duration, Duration> kStarting{4s, 9s};
constexpr Duration kStopping = 1s;

struct Pod {
  core::ReplicaState state;
  int32_t cpus = 0;
  bool placed = false;
};

}  // namespace

// One job: its pods, its data, and its controller.
class SharedCluster::Tenant : public backend::Backend {
 public:
  Tenant(SharedCluster& cluster, Plan plan)
      : cluster_(cluster), plan_(std::move(plan)), submitted_(cluster.agenda_.now()) {
    master_.cpus = plan_.master_cpus;
    log_ = ledger::LogHeader(ledger_.job());
    Turn();
  }

  // ---- The controller's view

  core::Observed Observe(const api::Job&) override {
    core::Observed seen;
    for (const auto& pod : pods_) seen.replicas.push_back(pod->state);
    const ledger::Standing standing = ledger_.Look(kSet, "");
    seen.data = core::DataView{.registered = standing.known,
                               .complete = ledger_.Complete(),
                               .todo = standing.todo,
                               .doing = standing.doing,
                               .done = plan_.shards - standing.todo - standing.doing,
                               .records_left = standing.records_left,
                               .records_total = standing.records_total};
    for (const std::string& name : ledger_.Misled()) {
      if (const auto member = core::MemberFrom(name)) seen.data->misled.insert(*member);
    }
    return seen;
  }

  Result<> Publish(const api::Job&, const api::JobStatus& status,
                   const std::vector<core::Event>&) override {
    if (api::IsTerminal(status) && !outcome_.ended.count()) {
      EXPECT_TRUE(api::Has(status, "Succeeded")) << plan_.job.metadata.name;
      outcome_.ended = now() - cluster_.begin_;
    }
    return {};
  }

  Result<> Perform(const api::Job&, const core::Action& action) override {
    if (const auto* start = std::get_if<core::Start>(&action)) {
      const std::string name = core::MemberName(start->id, start->attempt);
      pods_.push_back(std::make_unique<Pod>(
          Pod{.state = {.id = start->id, .incarnation = name, .attempt = start->attempt},
              .cpus = plan_.cpus.at(start->id.role)}));
      if (start->id.role != Role::kPs) {
        ledger_.Join(name, core::WorkerNumber(start->id, start->attempt), now(), batch_);
      }
    } else if (const auto* stop = std::get_if<core::Stop>(&action)) {
      if (Pod* pod = Find(stop->incarnation); pod && !pod->state.deleting) {
        pod->state.deleting = true;
        In(kStopping, stop->incarnation, [this](Pod& asked) { End(asked, 143); });
      }
    } else if (const auto* remove = std::get_if<core::Remove>(&action)) {
      std::erase_if(pods_,
                    [&](const auto& p) { return p->state.incarnation == remove->incarnation; });
    }
    Save();
    return {};
  }

  // ---- The scheduler's

  // What waits for a place, first what all others need. The pod of the master is one of them.
  std::vector<Pod*> Waiting() {
    std::vector<Pod*> waiting;
    if (!over() && !master_.placed) waiting.push_back(&master_);
    for (const bool workers : {false, true}) {
      for (const auto& pod : pods_) {
        const bool waits = !pod->placed && !pod->state.deleting && !core::HasEnded(pod->state);
        if (waits && (pod->state.id.role == Role::kWorker) == workers) waiting.push_back(pod.get());
      }
    }
    return waiting;
  }
  bool gang() const { return plan_.gang; }

  void Placed(Pod& pod) {
    pod.placed = true;
    if (&pod == &master_) return;
    const Duration takes = cluster_.random_.Between(kStarting.first, kStarting.second);
    In(takes, pod.state.incarnation, [this](Pod& placed) {
      if (placed.state.deleting || core::HasEnded(placed.state)) return;
      placed.state.phase = core::Phase::kRunning;
      placed.state.started = now();
      if (placed.state.id.role == Role::kWorker) Begin(placed.state.incarnation);
      Turn();
    });
  }

  bool over() const { return outcome_.ended.count() > 0; }

  Outcome Finished() {
    EXPECT_TRUE(over()) << plan_.job.metadata.name << " did not come to its end";
    auto audit = ledger::AuditLog(ledger_.job(), log_);
    EXPECT_TRUE(audit.has_value());
    if (audit) outcome_.audit = std::move(*audit);
    return std::move(outcome_);
  }

 private:
  Time now() const { return cluster_.agenda_.now(); }

  // Observe, decide, do; and what waits for a place may have one now.
  void Turn() {
    for (bool again = true; again;) {
      const controller::Turn turn = controller::Step(*this, plan_.job, policy_, now());
      EXPECT_FALSE(turn.error);
      again = turn.removed;
      if (turn.look_again) cluster_.agenda_.At(*turn.look_again, [this] { Turn(); });
    }
    if (over() && std::exchange(master_.placed, false)) cluster_.used_ -= master_.cpus;
    cluster_.Place();
  }

  Pod* Find(const std::string& incarnation) {
    const auto it = std::ranges::find(pods_, incarnation,
                                      [](const auto& pod) { return pod->state.incarnation; });
    return it == pods_.end() ? nullptr : it->get();
  }

  void In(Duration delay, const std::string& incarnation, std::function<void(Pod&)> deed) {
    cluster_.agenda_.In(delay, [this, incarnation, deed = std::move(deed)] {
      if (Pod* pod = Find(incarnation)) deed(*pod);
    });
  }

  void End(Pod& pod, int32_t code) {
    if (core::HasEnded(pod.state)) return;
    pod.state.phase = code == 0 ? core::Phase::kSucceeded : core::Phase::kFailed;
    pod.state.ending = core::Ending{.code = code,
                                    .signal = code > 128 ? code - 128 : 0,
                                    .when = now(),
                                    .stopped = pod.state.deleting};
    if (pod.placed) cluster_.used_ -= pod.cpus;
    if (pod.state.id.role != Role::kPs) {
      ledger_.Leave(pod.state.incarnation, code == 0, now(), batch_);
      Save();
    }
    Turn();
  }

  // ---- A worker

  void Begin(const std::string& member) {
    const ledger::SetParams params{
        .name = kSet, .size = plan_.shards * kShardSize, .shard_size = kShardSize, .epochs = 1};
    EXPECT_TRUE(ledger_.Register(params, batch_).has_value());
    TakeOne(member);
  }

  void TakeOne(const std::string& member) {
    const auto leases = ledger_.Take(kSet, member, 1, now(), batch_);
    Save();
    if (leases.empty()) {
      waiting_.push_back(member);
      if (ledger_.Complete()) SendHome();
      return;
    }
    if (!std::exchange(began_, true)) {
      outcome_.waited = now() - submitted_;
      outcome_.cpus_at_first = master_.cpus;
      for (const auto& pod : pods_) outcome_.cpus_at_first += pod->placed ? pod->cpus : 0;
    }
    // Some batches take longer than others.
    const Duration takes =
        cluster_.random_.Between(plan_.shard_takes * 9 / 10, plan_.shard_takes * 11 / 10);
    In(takes, member, [this, lease = leases[0].id](Pod& pod) {
      if (core::HasEnded(pod.state)) return;
      ledger_.Report(lease, "", now(), batch_);
      Save();
      TakeOne(pod.state.incarnation);
    });
  }

  // Nothing is left: who waits for shards is told, and ends.
  void SendHome() {
    for (const std::string& member : std::exchange(waiting_, {})) {
      ledger_.TellEnd(member, kSet, batch_);
      if (Pod* pod = Find(member)) End(*pod, 0);
    }
    Turn();
  }

  void Save() { log_ += ledger::Framed(std::exchange(batch_, {})); }

  SharedCluster& cluster_;
  Plan plan_;
  const Time submitted_;
  // As the operator's: what cleanPodPolicy leaves stays, but for elastic jobs.
  const core::Policy policy_{.end_leftovers = false, .clock_resolution = 1s};
  Pod master_;
  std::vector<std::unique_ptr<Pod>> pods_;
  ledger::Ledger ledger_{{.uid = plan_.job.metadata.uid, .name = plan_.job.metadata.name}};
  ledger::Batch batch_;
  std::string log_;
  std::vector<std::string> waiting_;  // members for whom there was no shard
  bool began_ = false;
  Outcome outcome_;
};

SharedCluster::SharedCluster(int32_t cpus, uint64_t seed)
    : agenda_(seed, kBegin), random_(seed), begin_(kBegin), cpus_(cpus) {}

SharedCluster::~SharedCluster() = default;

void SharedCluster::Submit(Duration at, Plan plan) {
  agenda_.At(begin_ + at, [this, plan = std::move(plan)]() mutable {
    tenants_.push_back(std::make_unique<Tenant>(*this, std::move(plan)));
    Place();
  });
}

void SharedCluster::Place() {
  for (const auto& tenant : tenants_) {
    const std::vector<Pod*> waiting = tenant->Waiting();
    int32_t all = 0;
    for (const Pod* pod : waiting) all += pod->cpus;
    if (tenant->gang() && used_ + all > cpus_) continue;
    for (Pod* pod : waiting) {
      if (used_ + pod->cpus > cpus_) continue;
      used_ += pod->cpus;
      tenant->Placed(*pod);
    }
  }
}

std::vector<Outcome> SharedCluster::Run() {
  while (agenda_.Step() && agenda_.now() < begin_ + 24h) {
  }
  EXPECT_EQ(used_, 0) << "all is over, and something still has a place";
  std::vector<Outcome> outcomes;
  for (const auto& tenant : tenants_) outcomes.push_back(tenant->Finished());
  return outcomes;
}

}  // namespace makespan
