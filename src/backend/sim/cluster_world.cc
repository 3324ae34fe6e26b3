#include "backend/sim/cluster_world.h"

#include <algorithm>

#include <fmt/core.h>

#include "backend/sim/api_object.h"

namespace backend::sim {

using base::Duration;
using base::Json;
using base::Time;
using namespace std::chrono_literals;

namespace {

constexpr Time kBegin{1'800'000'000s};
constexpr const char* kJobs = "/apis/kubeflow.org/v1/namespaces/default/tfjobs";
constexpr const char* kName = "mnist";
// Without time passing; more is a loop that a host would burn a core with.
constexpr int32_t kMostAdvances = 1000;

}  // namespace

class ClusterWorld::Silent : public cluster::Operator::Observer {
 public:
  void Published(const api::JobStatus&, const api::Job&) override {}
  void Deleted(const api::Job&) override {}
  void TurnOver(bool, Duration) override {}
};

ClusterWorld::ClusterWorld(uint64_t seed)
    : agenda(seed, kBegin),
      random(seed),
      server(agenda),
      kubelet(agenda, server, random),
      collector(agenda, server, random),
      observer_(std::make_unique<Silent>()) {
  server.Listen([this](const Change& change) {
    if (!tracing || change.resource == &kEvents || change.resource == &kLeases) return;
    const Json& object = change.after ? *change.after : *change.last;
    Trace(fmt::format("{:>6} {} {} {} {}{}", change.version,
                      !change.before  ? "+"
                      : !change.after ? "-"
                                      : "~",
                      change.resource->plural, NameOf(object), PhaseOf(object),
                      IsDeleting(object) ? " deleting" : ""));
  });
}

ClusterWorld::~ClusterWorld() {
  for (Process& process : processes) process.program.reset();
}

void ClusterWorld::Trace(const std::string& line) {
  if (!tracing) return;
  const auto since = std::chrono::duration<double>(agenda.now() - kBegin).count();
  trace += fmt::format("{:10.3f} {}\n", since, line);
}

void ClusterWorld::Found(const std::string& what) {
  if (!finding.empty()) return;
  finding = what;
  Trace("FOUND: " + what);
}

// ---- Operators

size_t ClusterWorld::AddOperator(std::string identity) {
  processes.push_back({.identity = std::move(identity)});
  Start(processes.size() - 1);
  return processes.size() - 1;
}

void ClusterWorld::Start(size_t index) {
  Process& process = processes[index];
  if (process.program) return;
  Trace(fmt::format("operator {} starts", index));
  process.clock_offset = clock_offset;
  process.transport = std::make_unique<SimTransport>(
      SimTransport::World{agenda, server, traffic, random}, [this, index] { Kill(index); });
  process.transport->SetWeather(weather);
  process.transport->SetPlan(plan);
  process.transport->SetStale(stale_, stale_lists_);
  process.transport->OnWrite([this, index](int32_t number) {
    Trace(fmt::format("operator {} sends #{} {}", index, number, traffic.writes().back()));
    if (on_write) on_write(number);
  });
  process.program = std::make_unique<cluster::Operator>(
      *process.transport,
      cluster::Operator::Options{.lease_namespace = "kube-system",
                                 .lease_name = "trainyard-operator",
                                 .identity = process.identity},
      *observer_);
  process.waking.reset();
  agenda.In(0s, [this, index] {
    if (processes[index].program) {
      processes[index].program->Advance(agenda.now() + processes[index].clock_offset);
    }
  });
}

void ClusterWorld::Kill(size_t index) {
  Process& process = processes[index];
  if (!process.program) return;
  Trace(fmt::format("operator {} is killed", index));
  process.program.reset();
  process.transport.reset();
  if (process.restarts) agenda.In(1s, [this, index] { Start(index); });
}

void ClusterWorld::SetStale(std::optional<Version> version, bool lists) {
  stale_ = version;
  stale_lists_ = lists;
  for (Process& process : processes) {
    if (process.transport) process.transport->SetStale(version, lists);
  }
}

void ClusterWorld::SetWeather(const Weather& next) {
  weather = next;
  for (Process& process : processes) {
    if (process.transport) process.transport->SetWeather(next);
  }
}

void ClusterWorld::Poll(size_t index) {
  Process& process = processes[index];
  if (!process.program) return;
  const Time wall = agenda.now() + process.clock_offset;
  for (int32_t i = 0;; ++i) {
    const std::optional<Time> next = process.program->next();
    const bool news = process.transport->TakeNews();
    if (!news && !(next && *next <= wall)) break;
    process.program->Advance(wall);
    if (i > kMostAdvances) return Found("the operator asks to be advanced without end");
  }
  const std::optional<Time> next = process.program->next();
  if (!next) return;
  const Time when = std::max(agenda.now(), *next - process.clock_offset);
  if (process.waking && *process.waking <= when) return;
  process.waking = when;
  agenda.At(when, [this, index, when] {
    if (processes[index].waking == when) processes[index].waking.reset();
  });
}

bool ClusterWorld::Step() {
  ++steps;
  const bool more = agenda.Step();
  for (size_t i = 0; i < processes.size(); ++i) Poll(i);
  if (!traffic.finding().empty()) Found(traffic.finding());
  return more;
}

// ---- People

kube::Response ClusterWorld::Ask(const std::string& method, const std::string& path,
                                 const std::string& body, const std::string& content_type) {
  return server.Serve({.method = method, .path = path, .content_type = content_type, .body = body});
}

void ClusterWorld::Submit(const std::string& manifest) {
  const kube::Response response = Ask("POST", kJobs, manifest);
  Trace(fmt::format("user: submit: {}", response.status));
  if (response.status == 201) return;
  if (response.status != 409) return Found("the job is refused: " + response.body);
  agenda.In(100ms, [this, manifest] { Submit(manifest); });
}

void ClusterWorld::PatchJob(const std::string& patch) {
  Trace("user: patch " + patch);
  const kube::Response response =
      Ask("PATCH", fmt::format("{}/{}", kJobs, kName), patch, "application/merge-patch+json");
  if (response.status != 200) Found("the user's patch is refused: " + response.body);
}

void ClusterWorld::DeleteJob() {
  Trace("user: delete");
  Ask("DELETE", fmt::format("{}/{}", kJobs, kName), R"({"propagationPolicy":"Background"})");
}

// ---- Views

Object ClusterWorld::Job() const { return server.store().Get(kTFJobs, KeyOf(kSpace, kName)); }

api::JobStatus ClusterWorld::Status() const {
  const Object job = Job();
  const Json* status = job ? base::Find(*job, "status") : nullptr;
  return status ? api::DecodeStatus(*status) : api::JobStatus();
}

bool ClusterWorld::Is(std::string_view condition) const { return api::Has(Status(), condition); }

std::vector<Object> ClusterWorld::Pods() const {
  std::vector<Object> out;
  for (const Object& pod : server.store().List(kPods, kSpace)) {
    const base::JsonObject& labels = ObjectAt(MetaOf(*pod), "labels");
    const Json* name = labels.if_contains("training.kubeflow.org/job-name");
    if (name && name->is_string() && name->as_string() == kName) out.push_back(pod);
  }
  return out;
}

bool ClusterWorld::OnlyUp(const std::set<std::string>& names) const {
  std::set<std::string> up;
  std::set<std::string> owners;
  for (const Object& pod : Pods()) {
    if (HasEnded(*pod)) continue;
    const Json* status = base::Find(*pod, "status");
    const base::JsonArray& containers = ArrayAt(*status, "containerStatuses");
    const bool ready = !containers.empty() && base::BoolOr(containers[0], "ready");
    if (IsDeleting(*pod) || !ready) return false;
    const base::JsonArray& refs = ArrayAt(MetaOf(*pod), "ownerReferences");
    owners.insert(refs.empty() ? "" : base::StringOr(refs[0], "uid"));
    up.insert(NameOf(*pod).substr(std::string_view(kName).size() + 1));
  }
  const Object job = Job();
  return up == names && job && (names.empty() || owners == std::set{UidOf(*job)});
}

}  // namespace backend::sim
