#include "backend/sim/trials.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "backend/sim/api_object.h"
#include "base/strings.h"

namespace backend::sim {
namespace {

using base::Duration;
using namespace std::chrono_literals;

const Workload* WorkloadNamed(std::string_view name) {
  for (const Workload& one : Workloads()) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

const ClusterLife& MeasureOf(const Workload& workload) {
  static std::map<std::string, ClusterLife> measures;
  const auto [it, fresh] = measures.try_emplace(workload.name);
  if (fresh) it->second = Live(workload, {});
  return it->second;
}

Trial Measured(std::string name, const Workload& workload, const Circumstances& circumstances,
               bool only_end = false) {
  Trial trial{.name = std::move(name)};
  const ClusterLife& measure = MeasureOf(workload);
  if (!measure.finding.empty()) {
    trial.finding =
        fmt::format("{} goes wrong without a fault: {}", workload.name, measure.finding);
    return trial;
  }
  trial.life = Live(workload, circumstances);
  trial.finding = Compared(trial.life, measure, only_end);
  return trial;
}

// ---- crash

Trial Crash(const Workload& workload, int32_t write, Fault fault, bool trace) {
  return Measured(fmt::format("crash/{}/{}/{}", workload.name, write, Name(fault)), workload,
                  {.plan = {write, fault}, .trace = trace});
}

// ---- party

struct Deed {
  const char* name;
  std::function<void(ClusterWorld&)> act;
};

std::string PodPath(const std::string& name) { return "/api/v1/namespaces/default/pods/" + name; }

constexpr const char* kMerge = "application/merge-patch+json";

// The pod that is to suffer: the last one that has not ended.
std::string Victim(const ClusterWorld& world) {
  std::string out;
  for (const Object& pod : world.Pods()) {
    if (!HasEnded(*pod) && !IsDeleting(*pod)) out = NameOf(*pod);
  }
  return out;
}

// Whoever made a pod a stranger removes it in the end.
void RemoveStranger(ClusterWorld& world, const std::string& name) {
  world.agenda.In(2min, [&world, name] {
    world.Trace("a third party removes " + name);
    world.Ask("DELETE", PodPath(name));
    world.Ask("PATCH", PodPath(name), R"({"metadata":{"finalizers":null}})", kMerge);
  });
}

const std::vector<Deed>& Deeds() {
  const auto patched = [](ClusterWorld& world, const char* patch) {
    const std::string victim = Victim(world);
    world.Trace(fmt::format("a third party patches {}: {}", victim, patch));
    if (!victim.empty()) world.Ask("PATCH", PodPath(victim), patch, kMerge);
    return victim;
  };
  static const std::vector<Deed> all = {
      {"delete-pod",
       [](ClusterWorld& world) {
         const std::string victim = Victim(world);
         world.Trace("a third party deletes " + victim);
         if (!victim.empty()) world.Ask("DELETE", PodPath(victim));
       }},
      {"delete-pod-by-force",
       [](ClusterWorld& world) {
         const std::string victim = Victim(world);
         world.Trace("a third party deletes by force " + victim);
         if (!victim.empty()) {
           world.Ask("DELETE", PodPath(victim), R"({"gracePeriodSeconds":0})");
         }
       }},
      {"evict-pod",
       [](ClusterWorld& world) {
         const std::string victim = Victim(world);
         world.Trace("a node evicts " + victim);
         if (!victim.empty()) world.kubelet.Evict(world.kSpace, victim);
       }},
      {"lose-node",
       [](ClusterWorld& world) {
         const std::string victim = Victim(world);
         world.Trace("the node is lost of " + victim);
         if (!victim.empty()) world.kubelet.LoseNode(world.kSpace, victim);
       }},
      {"delete-service",
       [](ClusterWorld& world) {
         for (const Object& service : world.server.store().List(kServices, world.kSpace)) {
           world.Trace("a third party deletes service " + NameOf(*service));
           world.Ask("DELETE", "/api/v1/namespaces/default/services/" + NameOf(*service));
           return;
         }
       }},
      {"strip-finalizer",
       [patched](ClusterWorld& world) { patched(world, R"({"metadata":{"finalizers":null}})"); }},
      {"take-label",
       [patched](ClusterWorld& world) {
         const std::string victim = patched(
             world, R"({"metadata":{"labels":{"training.kubeflow.org/operator-name":null}}})");
         if (!victim.empty()) RemoveStranger(world, victim);
       }},
      {"take-owner",
       [patched](ClusterWorld& world) {
         const std::string victim = patched(world, R"({"metadata":{"ownerReferences":null}})");
         if (!victim.empty()) RemoveStranger(world, victim);
       }},
      {"fill-quota",
       [](ClusterWorld& world) {
         world.server.pod_quota[world.kSpace] = 0;
         world.agenda.In(2min, [&world] { world.server.pod_quota.clear(); });
       }},
      {"refuse-admission",
       [](ClusterWorld& world) {
         world.server.admission = [](const std::string& method, const Target& target,
                                     const base::Json& object) -> std::optional<Refusal> {
           if (method != "POST" || target.resource != &kPods) return std::nullopt;
           return Forbidden(kPods, NameOf(object), "a policy says no").error();
         };
         world.agenda.In(2min, [&world] { world.server.admission = nullptr; });
       }},
  };
  return all;
}

// The end may have other counters, but it must be an end of the kind that was wanted, and clean.
Trial Party(const Workload& workload, int32_t write, const Deed& deed, bool trace) {
  Trial trial{.name = fmt::format("party/{}/{}/{}", workload.name, write, deed.name)};
  trial.life = Live(workload, {.trace = trace, .arrange = [&](ClusterWorld& world) {
                                 world.on_write = [&world, &deed, write](int32_t number) {
                                   if (number == write) {
                                     world.agenda.In(0s, [&world, &deed] { deed.act(world); });
                                   }
                                 };
                               }});
  trial.finding = trial.life.finding;
  return trial;
}

// ---- unseen

struct Unseen {
  const char* name;
  const char* workload;
  std::function<void(ClusterWorld&)> deed;
};

void EndAndDelete(ClusterWorld& world, const std::string& who, int32_t code) {
  world.kubelet.End(world.kSpace, "mnist-" + who, {.code = code});
  world.agenda.In(5s, [&world, who] { world.Ask("DELETE", PodPath("mnist-" + who)); });
}

const std::vector<Unseen>& AllUnseen() {
  const auto scale = [](int32_t n) {
    return fmt::format(R"({{"spec":{{"tfReplicaSpecs":{{"Worker":{{"replicas":{}}}}}}}}})", n);
  };
  static const std::vector<Unseen> all = {
      // Each is the deed of its workload, done while nobody looks, and what it was done to taken
      // away.
      {"success", "plain", [](ClusterWorld& world) { EndAndDelete(world, "chief-0", 0); }},
      {"failure", "retry", [](ClusterWorld& world) { EndAndDelete(world, "worker-1", 137); }},
      {"for-good", "chief-fails", [](ClusterWorld& world) { EndAndDelete(world, "chief-0", 1); }},
      {"deletion", "delete", [](ClusterWorld& world) { world.DeleteJob(); }},
      {"successor", "recreate",
       [](ClusterWorld& world) {
         world.DeleteJob();
         world.Submit(WorkloadNamed("recreate")->manifest);
       }},
      {"and-back", "plain",
       [scale](ClusterWorld& world) {
         world.PatchJob(scale(5));
         world.PatchJob(scale(2));
       }},
  };
  return all;
}

// The first step of the workload happens as the deed here; the others follow.
Trial RunUnseen(const Unseen& unseen, bool trace) {
  Workload workload = *WorkloadNamed(unseen.workload);
  const auto away = [deed = unseen.deed](ClusterWorld& world) {
    world.processes[0].restarts = false;
    world.Kill(0);
    world.agenda.In(1s, [&world, deed] { deed(world); });
    world.agenda.In(2min, [&world] {
      world.processes[0].restarts = true;
      world.Start(0);
    });
  };
  const bool extra = std::string_view(unseen.name) == "and-back";
  if (extra) workload.steps.insert(workload.steps.begin(), workload.steps.front());
  workload.steps.front().deed = away;
  Trial trial{.name = fmt::format("unseen/{}", unseen.name)};
  trial.life = Live(workload, {.trace = trace});
  trial.finding = trial.life.finding;
  // What others deleted we did not; but nothing is to be made once more.
  const ClusterLife& measure = MeasureOf(*WorkloadNamed(unseen.workload));
  for (const auto& [name, count] : trial.life.counts) {
    const auto it = measure.counts.find(name);
    const int32_t wanted = it == measure.counts.end() ? 0 : it->second.created;
    if (trial.finding.empty() && count.created != wanted) {
      trial.finding =
          fmt::format("{} was created {} times instead of {}", name, count.created, wanted);
    }
  }
  return trial;
}

// ---- storm

// While a job is being removed the operator may put back what went before the job did: it hears of
// each kind of object on a stream of its own. What it puts back belongs to nobody, and goes too.
bool Loses(const Workload& workload) {
  return workload.outcome == "Gone" || workload.name == "recreate";
}

Weather StormyWeather(Random& random) {
  const auto sometimes = [&](int32_t most) { return random.Chance(40) ? random.Below(most) : 0; };
  Weather out{.lost = sometimes(15),
              .failed = sometimes(15),
              .refused = sometimes(10),
              .throttled = sometimes(15),
              .slow_answers = sometimes(10),
              .cut = sometimes(20),
              .ended = sometimes(20),
              .doubled = sometimes(30),
              .held = sometimes(30),
              .gone = sometimes(10)};
  out.no_bookmarks = random.Chance(20);
  out.slowest = random.Chance(50) ? 5ms : random.Between(5ms, 3s);
  return out;
}

// A deadline counts from a time in the status, so an operator that starts after the clock has been
// set takes the step for time that has passed.
bool StartsFromAStoredTime(const Workload& workload) { return workload.name == "deadline"; }

// Kills, compactions, views of the past and steps of the clock, spread over the storm.
void Strike(ClusterWorld& world, Random& random, Duration storm, bool lists, bool steps) {
  for (int32_t i = random.Below(6); i > 0; --i) {
    const size_t victim = static_cast<size_t>(random.Below(2));
    world.agenda.In(random.Between(1ms, storm),
                    [&world, victim] { world.Kill(victim % world.processes.size()); });
  }
  for (int32_t i = random.Below(3); i > 0; --i) {
    const auto back = static_cast<Version>(random.Below(30));
    const Duration at = random.Between(1ms, storm);
    const bool killed = random.Chance(50);
    world.agenda.In(at, [&world, back, killed, lists] {
      const Version now = world.server.store().version();
      const Version floor = std::max<Version>(world.server.store().compacted(), 3);
      const Version then = std::max(now > back ? now - back : floor, floor);
      world.Trace(fmt::format("the endpoint is at version {}", then));
      world.SetStale(then, lists);
      if (killed) world.Kill(0);
    });
    world.agenda.In(at + random.Between(100ms, 60s), [&world] { world.SetStale(std::nullopt); });
  }
  for (int32_t i = random.Below(3); i > 0; --i) {
    world.agenda.In(random.Between(1ms, storm), [&world] {
      for (auto& process : world.processes) {
        if (process.transport) process.transport->CutStreams(true);
      }
    });
  }
  for (int32_t i = steps ? random.Below(3) : 0; i > 0; --i) {
    const Duration length = random.Chance(50) ? Duration(1s) : random.Between(1s, 1h);
    const Duration step = random.Chance(50) ? length : -length;
    world.agenda.In(random.Between(1ms, storm), [&world, step] {
      world.Trace(fmt::format("the operators' clock steps by {} s", step / 1s));
      world.clock_offset += step;
    });
  }
}

Trial Storm(uint64_t seed, bool lists, bool trace) {
  Random random(seed);
  const Workload& workload =
      Workloads()[static_cast<size_t>(random.Below(static_cast<int32_t>(Workloads().size())))];
  const Weather weather = StormyWeather(random);
  const Duration storm = random.Between(1min, 10min);
  return Measured(fmt::format("{}/{}", lists ? "travel" : "storm", seed), workload,
                  {.seed = seed,
                   .weather = weather,
                   .trace = trace,
                   .arrange =
                       [&](ClusterWorld& world) {
                         Strike(world, random, storm, lists, !StartsFromAStoredTime(workload));
                         world.agenda.In(storm, [&world] {
                           world.Trace("calm");
                           world.SetStale(std::nullopt);
                           world.SetWeather({});
                         });
                       }},
                  Loses(workload));
}

// ---- two

Trial Two(uint64_t seed, bool trace) {
  Random random(seed);
  const Workload& workload =
      Workloads()[static_cast<size_t>(random.Below(static_cast<int32_t>(Workloads().size())))];
  Weather weather;
  if (random.Chance(50)) weather.slowest = random.Between(1ms, 500ms);
  if (random.Chance(30)) weather.held = 30;
  // Each may do what the other has done already: only the end counts.
  return Measured(fmt::format("two/{}", seed), workload,
                  {.seed = seed,
                   .weather = weather,
                   .trace = trace,
                   .arrange =
                       [&](ClusterWorld& world) {
                         world.AddOperator();
                         world.AddOperator();
                         if (random.Chance(50)) {
                           world.agenda.In(random.Between(1ms, 5min), [&world] { world.Kill(1); });
                         }
                       }},
                  true);
}

}  // namespace

void CrashTrials(const Report& report) {
  for (const Workload& workload : Workloads()) {
    const auto writes = static_cast<int32_t>(MeasureOf(workload).writes.size());
    for (int32_t k = 0; k < std::max(writes, 1); ++k) {
      for (const Fault fault : kAllFaults) {
        if (!report(Crash(workload, k, fault, false))) return;
      }
    }
  }
}

void PartyTrials(const Report& report) {
  for (const Workload& workload : Workloads()) {
    const auto writes = static_cast<int32_t>(MeasureOf(workload).writes.size());
    for (int32_t k = 0; k < writes; ++k) {
      for (const Deed& deed : Deeds()) {
        if (!report(Party(workload, k, deed, false))) return;
      }
    }
  }
}

void UnseenTrials(const Report& report) {
  for (const Unseen& unseen : AllUnseen()) {
    if (!report(RunUnseen(unseen, false))) return;
  }
}

void StormTrials(uint64_t first_seed, uint64_t count, const Report& report) {
  for (uint64_t i = 0; i < count; ++i) {
    if (!report(Storm(first_seed + i, false, false))) return;
  }
}

void TravelTrials(uint64_t first_seed, uint64_t count, const Report& report) {
  for (uint64_t i = 0; i < count; ++i) {
    if (!report(Storm(first_seed + i, true, false))) return;
  }
}

void TwoTrials(uint64_t first_seed, uint64_t count, const Report& report) {
  for (uint64_t i = 0; i < count; ++i) {
    if (!report(Two(first_seed + i, false))) return;
  }
}

Trial TrialAgain(const std::string& name) {
  const Trial unknown{.name = name, .finding = "there is no such trial"};
  const std::vector<std::string_view> parts = base::Split(name, '/');
  const auto number = [&](size_t i) {
    return i < parts.size() ? base::ParseInt(parts[i]).value_or(-1) : -1;
  };
  if ((parts[0] == "storm" || parts[0] == "travel") && number(1) >= 0) {
    return Storm(static_cast<uint64_t>(number(1)), parts[0] == "travel", true);
  }
  if (parts[0] == "two" && number(1) >= 0) return Two(static_cast<uint64_t>(number(1)), true);
  if (parts[0] == "unseen" && parts.size() == 2) {
    for (const Unseen& unseen : AllUnseen()) {
      if (parts[1] == unseen.name) return RunUnseen(unseen, true);
    }
  }
  if (parts.size() == 2 && parts[0] == "plain") {  // a workload without a fault
    const Workload* workload = WorkloadNamed(parts[1]);
    if (!workload) return unknown;
    Trial trial{.name = name, .life = Live(*workload, {.trace = true})};
    trial.finding = trial.life.finding;
    return trial;
  }
  if (parts.size() != 4) return unknown;
  const Workload* workload = WorkloadNamed(parts[1]);
  if (!workload) return unknown;
  const auto write = static_cast<int32_t>(number(2));
  for (const Fault fault : kAllFaults) {
    if (parts[0] == "crash" && parts[3] == Name(fault)) return Crash(*workload, write, fault, true);
  }
  for (const Deed& deed : Deeds()) {
    if (parts[0] == "party" && parts[3] == deed.name) return Party(*workload, write, deed, true);
  }
  return unknown;
}

}  // namespace backend::sim
