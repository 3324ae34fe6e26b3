#include "backend/sim/workloads.h"

#include <algorithm>

#include <fmt/core.h>

#include "backend/sim/api_object.h"

namespace backend::sim {
namespace {

using Step = Workload::Step;
using Names = std::set<std::string>;
using namespace std::chrono_literals;

struct Roles {
  int32_t chief = 0, ps = 0, worker = 0;
};

std::string Manifest(Roles roles, const std::string& policy, const std::string& run_policy) {
  std::string specs;
  const auto add = [&](const char* role, int32_t n) {
    if (n == 0) return;
    specs += fmt::format(
        R"({}"{}":{{"replicas":{},"restartPolicy":"{}","template":{{"spec":{{"containers":)"
        R"([{{"name":"tensorflow","image":"image:1"}}]}}}}}})",
        specs.empty() ? "" : ",", role, n, policy);
  };
  add("Chief", roles.chief);
  add("PS", roles.ps);
  add("Worker", roles.worker);
  return fmt::format(
      R"({{"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{{"name":"mnist"}},)"
      R"("spec":{{"runPolicy":{{{}}},"tfReplicaSpecs":{{{}}}}}}})",
      run_policy, specs);
}

Names All(Roles roles) {
  Names out;
  for (int32_t i = 0; i < roles.chief; ++i) out.insert(fmt::format("chief-{}", i));
  for (int32_t i = 0; i < roles.ps; ++i) out.insert(fmt::format("ps-{}", i));
  for (int32_t i = 0; i < roles.worker; ++i) out.insert(fmt::format("worker-{}", i));
  return out;
}

// What runs is of the attempts that the job wants. An older generation may look the same, and what
// it comes to counts no more.
bool OfTheseDays(const ClusterWorld& world) {
  const api::JobStatus status = world.Status();
  return std::ranges::all_of(world.Pods(), [&](const Object& pod) {
    const base::JsonObject& labels = ObjectAt(MetaOf(*pod), "labels");
    const auto label = [&](const char* key) {
      const base::Json* value = labels.if_contains(key);
      return value && value->is_string() ? std::string(value->as_string()) : "";
    };
    const auto id = api::ReplicaIdFrom(label("training.kubeflow.org/replica-type") + "-" +
                                       label("training.kubeflow.org/replica-index"));
    const auto unit = id ? status.units.find(*id) : status.units.end();
    const int32_t wanted = unit == status.units.end() ? status.gang.attempt : unit->second.attempt;
    return HasEnded(*pod) || label("trainyard.dev/attempt") == std::to_string(wanted);
  });
}

auto Up(Roles roles) {
  // And the operator has noticed.
  return [names = All(roles)](const ClusterWorld& world) {
    return world.OnlyUp(names) && OfTheseDays(world) && world.Is("Running");
  };
}

auto Exit(std::string who, int32_t code, std::string reason = "") {
  return [=](ClusterWorld& world) {
    world.Trace(fmt::format("{} exits with {}", who, code));
    if (!world.kubelet.End(world.kSpace, "mnist-" + who, {.code = code, .reason = reason})) {
      world.Found(who + " does not run");
    }
  };
}

// Its peers cannot go on without it, and exit by themselves in their own time.
auto ExitInGang(std::string who, int32_t code, Names gang) {
  return [=](ClusterWorld& world) {
    std::map<std::string, std::string> uids;
    for (const Object& pod : world.Pods()) {
      uids[base::StringOr((*pod).at("metadata"), "name")] =
          base::StringOr((*pod).at("metadata"), "uid");
    }
    Exit(who, code)(world);
    base::Duration takes{0};
    for (const std::string& peer : gang) {
      if (peer == who) continue;
      const std::string name = "mnist-" + peer, uid = uids[name];
      world.agenda.In(takes += 2s, [&world, name, uid] {
        const Object pod = world.server.store().Get(kPods, KeyOf(world.kSpace, name));
        if (pod && base::StringOr((*pod).at("metadata"), "uid") == uid) {
          world.kubelet.End(world.kSpace, name, {.code = 1});
        }
      });
    }
  };
}

auto AllExit(Names who) {
  return [=](ClusterWorld& world) {
    for (const std::string& one : who) Exit(one, 0)(world);
  };
}

auto Patch(std::string patch) {
  return [=](ClusterWorld& world) { world.PatchJob(patch); };
}

auto Scale(int32_t workers) {
  return Patch(
      fmt::format(R"({{"spec":{{"tfReplicaSpecs":{{"Worker":{{"replicas":{}}}}}}}}})", workers));
}

// The operator has noticed that so many replicas have done their work.
auto Completed(size_t n) {
  return [=](const ClusterWorld& world) {
    return world.Status().completed.size() == n &&
           std::ranges::none_of(world.Pods(), [](const Object& pod) { return IsDeleting(*pod); });
  };
}

template <typename A, typename B>
auto Either(A a, B b) {
  return [=](const ClusterWorld& world) { return a(world) || b(world); };
}

bool NoPods(const ClusterWorld& world) { return world.Pods().empty() && world.Job(); }

std::vector<Workload> Make() {
  const Roles servers{.chief = 1, .ps = 1, .worker = 2};
  const Roles gang{.worker = 3};
  const std::string clean = R"("cleanPodPolicy":"Running")";
  const std::string exit_code = "ExitCode";
  const Step finish{Up(servers), 60s, Exit("chief-0", 0)};
  const std::string manifest = Manifest(servers, exit_code, clean);
  const Step again{Up(servers), 60s, Exit("worker-1", 137)};
  std::vector<Workload> out;
  out.push_back({"plain", manifest, {finish}, "Succeeded"});
  out.push_back({"retry", manifest, {again, finish}, "Succeeded"});
  out.push_back({"chief-fails", manifest, {{Up(servers), 60s, Exit("chief-0", 1)}}, "Failed"});
  out.push_back({"backoff-limit",
                 Manifest(servers, exit_code, clean + R"(,"backoffLimit":2)"),
                 {again, again, again},
                 "Failed"});
  out.push_back({"deadline",
                 Manifest(servers, exit_code, clean + R"(,"activeDeadlineSeconds":300)"),
                 {},
                 "Failed"});
  out.push_back({"time-to-live",
                 Manifest(servers, exit_code, clean + R"(,"ttlSecondsAfterFinished":100)"),
                 {finish},
                 "Gone"});
  out.push_back({"suspend",
                 manifest,
                 {{Up(servers), 60s, Patch(R"({"spec":{"runPolicy":{"suspend":true}}})")},
                  {NoPods, 60s, Patch(R"({"spec":{"runPolicy":{"suspend":false}}})")},
                  finish},
                 "Succeeded"});
  out.push_back({"scale",
                 Manifest({.worker = 2}, exit_code, clean),
                 {{Up({.worker = 2}), 60s, Scale(5)},
                  {Up({.worker = 5}), 60s, Scale(1)},
                  {Up({.worker = 1}), 60s, Exit("worker-0", 0)}},
                 "Succeeded"});
  out.push_back(
      {"ps-lost", manifest, {{Up(servers), 60s, Exit("ps-0", 137)}, finish}, "Succeeded"});
  out.push_back({"gang",
                 Manifest(gang, exit_code, clean),
                 {{Up(gang), 60s, ExitInGang("worker-2", 137, All(gang))},
                  {Up(gang), 60s, AllExit({"worker-1", "worker-2"})},
                  // All again, if somebody takes the last one away.
                  {Either(Completed(2), Up(gang)), 60s, Exit("worker-0", 0)}},
                 "Succeeded"});
  const auto remove = [](ClusterWorld& world) { world.DeleteJob(); };
  out.push_back({"delete", manifest, {{Up(servers), 60s, remove}}, "Gone"});
  out.push_back({"recreate",
                 manifest,
                 {{Up(servers), 5s,
                   [manifest](ClusterWorld& world) {
                     world.DeleteJob();
                     world.Submit(manifest);
                   }},
                  finish},
                 "Succeeded"});
  return out;
}

}  // namespace

const std::vector<Workload>& Workloads() {
  static const std::vector<Workload> all = Make();
  return all;
}

}  // namespace backend::sim
