#include "backend/sim/cluster_life.h"

#include <algorithm>

#include <fmt/core.h>

#include "backend/sim/api_object.h"
#include "backend/sim/cluster_checks.h"

namespace backend::sim {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Time;
using namespace std::chrono_literals;

constexpr int64_t kMostSteps = 200'000;
constexpr base::Duration kLongest = std::chrono::hours(12);

bool IsVolatile(std::string_view key) {
  constexpr std::string_view kKeys[] = {"uid",
                                        "resourceVersion",
                                        "creationTimestamp",
                                        "lastTransitionTime",
                                        "startTime",
                                        "lastUpdateTime",
                                        "completionTime",
                                        "deletionTimestamp",
                                        "startedAt",
                                        "finishedAt",
                                        "lastProbeTime",
                                        "generation",
                                        "notBefore",
                                        "when",
                                        "podIP",
                                        "lastReconcileTime",
                                        "consequences"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

// Without what no two lives share, its members in order.
Json Levelled(const Json& value) {
  if (const JsonObject* object = value.if_object()) {
    std::map<std::string, Json> sorted;
    for (const auto& [key, member] : *object) {
      if (!IsVolatile(key)) sorted.emplace(key, Levelled(member));
    }
    JsonObject out;
    for (auto& [key, member] : sorted) out[key] = std::move(member);
    return out;
  }
  if (const JsonArray* array = value.if_array()) {
    JsonArray out;
    for (const Json& one : *array) out.push_back(Levelled(one));
    return out;
  }
  return value;
}

std::string EndOf(const ClusterWorld& world) {
  std::string out;
  for (const Resource* resource : {&kTFJobs, &kPods, &kServices}) {
    for (const Object& object : world.server.store().List(*resource, "")) {
      out += fmt::format("{} {} {}\n", resource->plural, NameOf(*object),
                         base::CompactJson(Levelled(*object)));
    }
  }
  return out;
}

// Goes through the steps of a workload.
class Script {
 public:
  Script(const Workload& workload, ClusterWorld& world) : workload_(workload), world_(world) {}

  bool done() const { return at_ == workload_.steps.size(); }

  void Look() {
    if (done() || waiting_ || !workload_.steps[at_].when(world_)) return;
    waiting_ = true;
    world_.agenda.In(workload_.steps[at_].after, [this] {
      waiting_ = false;
      if (!workload_.steps[at_].when(world_)) return;
      const Workload::Step& step = workload_.steps[at_++];
      step.deed(world_);
    });
  }

 private:
  const Workload& workload_;
  ClusterWorld& world_;
  size_t at_ = 0;
  bool waiting_ = false;
};

bool IsOver(const Workload& workload, const ClusterWorld& world) {
  return workload.outcome == "Gone" ? !world.Job() && world.Pods().empty()
                                    : world.Is(workload.outcome);
}

}  // namespace

ClusterLife Live(const Workload& workload, const Circumstances& circumstances) {
  ClusterWorld world(circumstances.seed);
  world.tracing = circumstances.trace;
  world.weather = circumstances.weather;
  world.plan = circumstances.plan;
  ClusterChecks checks(world);
  Script script(workload, world);
  if (circumstances.arrange) circumstances.arrange(world);
  if (world.processes.empty()) world.AddOperator();
  world.Submit(workload.manifest);
  const Time begin = world.agenda.now();
  std::optional<Time> over;
  std::optional<size_t> writes_at_rest;
  while (world.finding.empty()) {
    if (!world.Step()) world.Found("nothing is left to happen");
    script.Look();
    const Time now = world.agenda.now();
    if (!over && script.done() && IsOver(workload, world)) over = now;
    if (over && !writes_at_rest && now > *over + 10min) {
      writes_at_rest = world.traffic.writes().size();
    }
    if (over && now > *over + 70min) break;
    if (world.steps > kMostSteps || now > begin + kLongest) {
      const api::JobStatus status = world.Status();
      world.Found(fmt::format("does not come to its end: {}", status.conditions.empty()
                                                                  ? "no condition"
                                                                  : status.conditions.back().type));
    }
  }
  if (world.finding.empty()) checks.AtEnd();
  if (writes_at_rest && world.traffic.writes().size() > *writes_at_rest) {
    world.Found("a write long after the end: " + world.traffic.writes()[*writes_at_rest]);
  }
  return {.finding = world.finding,
          .trace = std::move(world.trace),
          .end = EndOf(world),
          .writes = world.traffic.writes(),
          .counts = world.traffic.counts(),
          .steps = world.steps};
}

namespace {

// A service that is to go, and whose deletion is lost until it is wanted again, has stayed: as
// well.
bool IsAsGood(const std::string& name, Traffic::Count count, Traffic::Count wanted) {
  if (count == wanted) return true;
  return name.starts_with("services ") && count.created > 0 && count.created < wanted.created &&
         count.created - count.deleted == wanted.created - wanted.deleted;
}

}  // namespace

std::string Compared(const ClusterLife& life, const ClusterLife& measure, bool only_end) {
  if (!life.finding.empty()) return life.finding;
  if (!only_end && life.counts != measure.counts) {
    for (const auto& [name, count] : life.counts) {
      const auto it = measure.counts.find(name);
      const Traffic::Count wanted = it == measure.counts.end() ? Traffic::Count() : it->second;
      if (!IsAsGood(name, count, wanted)) {
        return fmt::format("{} was created {} times and deleted {} times instead of {} and {}",
                           name, count.created, count.deleted, wanted.created, wanted.deleted);
      }
    }
    if (life.counts.size() != measure.counts.size()) return "something was not created at all";
  }
  if (life.end != measure.end) {
    const auto [a, b] = std::ranges::mismatch(life.end, measure.end);
    const auto at = static_cast<size_t>(a - life.end.begin());
    const auto from = at < 60 ? 0 : at - 60;
    return fmt::format("another end: ...{}... instead of ...{}...", life.end.substr(from, 160),
                       measure.end.substr(from, 160));
  }
  return "";
}

}  // namespace backend::sim
