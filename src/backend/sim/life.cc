// A life has three parts. First faults and people's wishes, drawn from the seed, strike while the
// job runs. Then the world is calm: nothing but the job's own replicas acts, and the job must come
// to an end. Then an hour must pass without a further write.
#include "backend/sim/life.h"

#include <fmt/core.h>

#include "backend/sim/checks.h"
#include "backend/sim/world.h"
#include "controller/step.h"

namespace backend::sim {
namespace {

using api::ReplicasOf;
using api::Role;
using base::Duration;
using base::Time;
using namespace std::chrono_literals;

constexpr int32_t kMostHappenings = 4000;

class Living {
 public:
  Living(uint64_t seed, bool trace) : world_(seed, seed % 3 == 2), checks_(world_, policy_) {
    world_.tracing = trace;
    world_.witness = &checks_;
    if (world_.cluster) {
      policy_ = {.end_leftovers = false, .clock_resolution = 1s, .notices_silence = 90s};
    }
    MakeJob();
    job_ = world_.stored;
  }

  Lived Run() {
    Random& random = world_.random;
    const Duration stormy = random.Between(30s, 400s);
    for (int32_t i = random.Below(7); i > 0; --i) {
      world_.Schedule(What::kFault, random.Between(1ms, stormy));
    }
    for (int32_t i = random.Below(4); i > 0; --i) {
      world_.Schedule(What::kUser, random.Between(1ms, stormy));
    }
    world_.Schedule(What::kCalm, stormy);
    world_.Schedule(What::kTurn, 0s);
    int32_t happenings = 0;
    std::optional<Time> ended;
    int32_t publishes_at_rest = -1;
    while (!world_.queue.empty() && checks_.finding().empty()) {
      const Happening next = world_.queue.top();
      if (ended && next.at > *ended + 1h) break;
      world_.queue.pop();
      world_.now = next.at;
      Happen(next);
      if (std::exchange(world_.changed, false) && !down_) Wake();
      if (calm_ && !ended && api::IsTerminal(world_.stored.status)) ended = world_.now;
      if (ended && world_.now > *ended + 1min && publishes_at_rest < 0) {
        publishes_at_rest = world_.publishes;
      }
      if (++happenings > kMostHappenings) checks_.Found("no end of happenings");
    }
    if (checks_.finding().empty()) {
      checks_.AtEnd();
      if (publishes_at_rest >= 0 && world_.publishes > publishes_at_rest) {
        checks_.Found("a write long after the end");
      }
    }
    Lived lived{.digest = world_.digest,
                .finding = checks_.finding(),
                .trace = std::move(world_.trace),
                .outcome = api::Has(world_.stored.status, "Succeeded") ? "Succeeded" : "Failed",
                .happenings = happenings};
    lived.digest = (lived.digest ^ static_cast<uint64_t>(happenings)) * 1099511628211u;
    return lived;
  }

 private:
  // ---- What is asked for ----

  void MakeJob() {
    Random& random = world_.random;
    api::Job& job = world_.stored;
    job.metadata = {.name = "job", .name_space = "default", .uid = "1"};
    world_.kind = static_cast<Kind>(random.Below(3));
    const api::RestartPolicy policies[] = {
        api::RestartPolicy::kExitCode, api::RestartPolicy::kExitCode, api::RestartPolicy::kNever,
        api::RestartPolicy::kOnFailure, api::RestartPolicy::kAlways};
    const api::RestartPolicy policy = policies[random.Below(5)];
    const auto add = [&](Role role, int32_t n) {
      job.spec.replicas[role] = {.replicas = n, .restart_policy = policy};
    };
    switch (world_.kind) {
      case Kind::kGang:
        add(Role::kWorker, 1 + random.Below(4));
        if (random.Chance(25)) add(Role::kChief, 1);
        break;
      case Kind::kServers:
        add(Role::kPs, 1 + random.Below(2));
        add(Role::kWorker, 1 + random.Below(2));
        if (random.Chance(70)) {
          const Role leader = random.Chance(80) ? Role::kChief : Role::kMaster;
          add(leader, 1 + random.Below(2));
        }
        break;
      case Kind::kIndependent:
        add(Role::kWorker, 1 + random.Below(3));
        if (random.Chance(50)) {
          job.extensions.elastic = api::Elastic{1, 5};
          if (random.Chance(70)) world_.data.total = world_.data.todo = 1 + random.Below(25);
        } else {
          job.extensions.restart_scope = api::RestartScope::kReplica;
        }
        break;
    }
    if (random.Chance(30)) {
      add(Role::kEvaluator, 1);
      job.extensions.wait_for_evaluator = random.Chance(50);
    }
    if (world_.kind != Kind::kServers && random.Chance(30)) {
      job.spec.success_policy = api::SuccessPolicy::kAllWorkers;
    } else {
      world_.lingers = random.Chance(15);
    }
    api::RunPolicy& run = job.spec.run_policy;
    run.clean_pod_policy = static_cast<api::CleanPodPolicy>(random.Below(3));
    job.extensions.end_leftovers = random.Chance(30);
    if (random.Chance(60)) run.backoff_limit = random.Below(5);
    if (random.Chance(20)) run.active_deadline_seconds = 20 + random.Below(800);
    if (random.Chance(20)) run.ttl_seconds_after_finished = random.Below(600);
    if (random.Chance(10)) run.suspend = true;
    if (random.Chance(10)) job.extensions.start_deadline = random.Between(60s, 600s);
    world_.work = random.Chance(20) ? random.Between(600s, 1500s) : random.Between(5s, 300s);
    world_.Trace(fmt::format("kind {} policy {} limit {} cluster {}", int(world_.kind), int(policy),
                             run.backoff_limit.value_or(-1), world_.cluster));
  }

  // ---- What happens ----

  void Happen(const Happening& h) {
    if (world_.Happen(h)) return;
    switch (h.what) {
      case What::kTurn:
        if (wake_at_ && *wake_at_ <= world_.now) wake_at_.reset();
        if (!down_) Turn();
        break;
      case What::kRestart:
        down_ = world_.crashed = false;
        world_.controller_offset = world_.clock_offset;
        world_.Trace("a new controller");
        Reload();
        Wake();
        break;
      case What::kFault:
        if (!calm_) Fault();
        break;
      case What::kUser:
        if (!calm_) Wish();
        break;
      case What::kCalm:
        Calm();
        break;
      default:
        break;
    }
  }

  void Wake() { WakeIn(calm_ ? Duration(1ms) : world_.random.Between(1ms, 50ms)); }

  void WakeIn(Duration in) {
    if (wake_at_ && *wake_at_ <= world_.now + in) return;
    wake_at_ = world_.now + in;
    world_.Schedule(What::kTurn, in);
  }

  // A controller that starts knows what was stored, and nothing else.
  void Reload() {
    job_ = world_.stored;
    job_.status = api::DecodeStatus(api::EncodeStatus(world_.stored.status));
    if (job_.status != world_.stored.status) checks_.Found("the status does not survive its codec");
  }

  void Turn() {
    if (world_.deleted) return;
    const bool undisturbed = world_.crash_after < 0 && world_.failing_publishes == 0 &&
                             world_.failing_actions == 0 && world_.stale_views == 0;
    if (world_.random.Chance(10)) CheckOrder();
    const controller::Turn turn = controller::Step(world_, job_, policy_, world_.ControllerTime());
    checks_.TurnOver(turn, undisturbed);
    if (calm_ && !turn.error && world_.random.Chance(10)) CheckSettles();
    if (world_.crashed) {
      down_ = true;
      wake_at_.reset();
      world_.Schedule(What::kRestart, world_.random.Between(10ms, calm_ ? 1s : 20s));
      return;
    }
    if (turn.error) {
      Reload();
      return WakeIn(1s);
    }
    if (turn.acted) {
      if (++acted_in_row_ > 200) checks_.Found("does not settle");
      WakeIn(5ms);
    } else {
      acted_in_row_ = 0;
    }
    if (turn.look_again) WakeIn(std::max(Duration(0), *turn.look_again - world_.ControllerTime()));
  }

  // The law that the order of what was seen does not matter.
  void CheckOrder() {
    core::Observed seen = world_.Observe(job_);
    const core::Decision one = core::Reconcile(job_, seen, policy_, world_.ControllerTime());
    std::ranges::reverse(seen.replicas);
    const core::Decision other = core::Reconcile(job_, seen, policy_, world_.ControllerTime());
    if (one.status != other.status || one.actions != other.actions ||
        one.look_again != other.look_again) {
      checks_.Found("the order of what was seen matters");
    }
  }

  // The law that doing what it says and asking again asks for nothing new.
  void CheckSettles() {
    for (int32_t i = 0; i < 6 && !world_.deleted; ++i) {
      const int32_t before = world_.publishes;
      const Time now = world_.ControllerTime();
      const controller::Turn turn = controller::Step(world_, job_, policy_, now);
      const bool stopping = std::ranges::any_of(
          world_.all, [](const Incarnation& one) { return one.live && one.state.deleting; });
      if ((!turn.acted || stopping) && world_.publishes == before) return;
    }
    if (!world_.deleted) checks_.Found("does not settle");
  }

  // ---- Faults ----

  void Fault() {
    Random& random = world_.random;
    const std::vector<int32_t> running = world_.Running();
    const auto victim = [&]() -> Incarnation* {
      return running.empty() ? nullptr
                             : &world_.all[static_cast<size_t>(running[static_cast<size_t>(
                                   random.Below(static_cast<int32_t>(running.size())))])];
    };
    switch (random.Below(14)) {
      case 0:
      case 1:
      case 2:
        if (Incarnation* one = victim()) world_.Kill(*one, 137);
        break;
      case 3:
        if (Incarnation* one = victim()) world_.Kill(*one, random.Chance(70) ? 139 : 1);
        break;
      case 4:
        if (Incarnation* one = victim()) world_.Kill(*one, 42);
        break;
      case 5:
        if (Incarnation* one = victim()) {
          world_.Kill(*one, 137);
          one->state.ending->memory_limit_by = "polling";
        }
        break;
      case 6:
        if (running.empty()) break;
        if (world_.cluster) {
          const int32_t subject =
              running[static_cast<size_t>(random.Below(static_cast<int32_t>(running.size())))];
          if (!world_.all[static_cast<size_t>(subject)].stop_asked)
            world_.DeleteBySomebody(subject);
        } else if (Incarnation* one = victim()) {
          world_.Kill(*one, 137, "preempted");
        }
        break;
      case 7:
        if (!down_) world_.crash_after = random.Below(7);
        break;
      case 8:
        world_.failing_publishes = 1 + random.Below(2);
        break;
      case 9:
        world_.failing_actions = 1 + random.Below(2);
        break;
      case 10:
        world_.stale_views = 1 + random.Below(3);
        break;
      case 11: {
        // How long a node has been silent is known by the clock.
        if (world_.AnySilenced()) break;
        const Duration most = random.Chance(50) ? Duration(2s) : Duration(1h);
        const Duration step = random.Between(1ms, most);
        world_.clock_offset += random.Chance(50) ? step : -step;
        world_.Trace("the clock jumps");
        break;
      }
      case 13:
        if (world_.cluster && !running.empty()) {
          const int32_t subject =
              running[static_cast<size_t>(random.Below(static_cast<int32_t>(running.size())))];
          if (!world_.all[static_cast<size_t>(subject)].stop_asked) world_.Silence(subject);
        }
        break;
      case 12:
        if (world_.cluster) {  // two at once
          if (Incarnation* one = victim()) world_.Kill(*one, 137);
          if (Incarnation* one = victim(); one && one->live) world_.Kill(*one, 143);
        } else {
          world_.Trace("the supervisor is lost");
          world_.TakeAwayAll();
          world_.crashed = down_ = true;
          world_.Schedule(What::kRestart, random.Between(10ms, 20s));
        }
        break;
    }
    // Faults come in company: a crash while the answer to this one is carried out.
    if (!down_ && random.Chance(30)) world_.crash_after = random.Below(6);
  }

  // ---- People ----

  void Wish() {
    Random& random = world_.random;
    api::Job& job = world_.stored;
    api::RunPolicy& run = job.spec.run_policy;
    const Time now = world_.ControllerTime();
    switch (random.Below(7)) {
      case 0:
      case 1:
        run.suspend = !run.suspend;
        world_.Trace(run.suspend ? "user: suspend" : "user: resume");
        world_.Schedule(What::kUser, random.Between(1ms, 20s));
        break;
      case 2:
      case 3: {
        const Role role =
            world_.kind == Kind::kServers && random.Chance(40) ? Role::kPs : Role::kWorker;
        job.spec.replicas[role].replicas = 1 + random.Below(4);
        world_.Trace(
            fmt::format("user: scale {} to {}", api::Name(role), ReplicasOf(job.spec, role)));
        world_.Advance();
        if (random.Chance(40)) world_.Schedule(What::kUser, random.Between(1ms, 3s));
        break;
      }
      case 4:
        if (auto it = job.spec.replicas.find(Role::kEvaluator); it != job.spec.replicas.end()) {
          it->second.replicas = random.Below(3);
          world_.Trace(fmt::format("user: scale evaluator to {}", it->second.replicas));
        }
        break;
      case 5:
        if (run.backoff_limit) run.backoff_limit = random.Below(6);
        break;
      case 6:
        if (api::Has(job.status, "Succeeded") || world_.deleted) break;
        world_.Trace("user: stop");
        job.status = core::Stopped(job, "ann", now);
        if (random.Chance(80)) {
          world_.Trace("user: resume");
          job.status = core::Revived(job, now);
        }
        break;
    }
    checks_.ByHand();
    if (!down_) Reload();
    world_.changed = true;
  }

  void Calm() {
    calm_ = true;
    world_.Trace("calm");
    world_.failing_publishes = world_.failing_actions = world_.stale_views = 0;
    world_.crash_after = -1;
    if (world_.stored.spec.run_policy.suspend) {
      world_.stored.spec.run_policy.suspend = false;
      checks_.ByHand();
      if (!down_) Reload();
    }
    world_.changed = true;
  }

  core::Policy policy_;
  World world_;
  Checks checks_;
  api::Job job_;  // the controller's memory
  bool calm_ = false;
  bool down_ = false;
  int32_t acted_in_row_ = 0;
  std::optional<Time> wake_at_;
};

}  // namespace

Lived Life(uint64_t seed, bool trace) { return Living(seed, trace).Run(); }

}  // namespace backend::sim
