// A simulated cluster with one TFJob in it and the real operator at work: the model of the API
// server, its garbage collector, scheduler and kubelet, and one or two operator processes that can
// be killed and started at any time.
//
// The operator is advanced exactly when a host would: when something came in, or when the time
// that it named has come. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/status.h"
#include "backend/cluster/operator.h"
#include "backend/sim/agenda.h"
#include "backend/sim/api_server.h"
#include "backend/sim/collector.h"
#include "backend/sim/kubelet.h"
#include "backend/sim/sim_transport.h"
#include "backend/sim/traffic.h"

namespace backend::sim {

class ClusterWorld {
 public:
  explicit ClusterWorld(uint64_t seed);
  ~ClusterWorld();
  ClusterWorld(const ClusterWorld&) = delete;

  // ---- Operators

  struct Process {
    std::unique_ptr<SimTransport> transport;
    std::unique_ptr<cluster::Operator> program;
    std::string identity;              // empty: without election
    base::Duration clock_offset{0};    // of the wall clock when it started
    std::optional<base::Time> waking;  // there is an entry on the agenda
    bool restarts = true;              // by itself, a second after it was killed
  };
  // Number of it in `processes`. Every transport begins with `weather` and `plan`.
  size_t AddOperator(std::string identity = "");
  void Start(size_t process);
  void Kill(size_t process);
  std::vector<Process> processes;
  // The offset of the operators' wall clock. The cluster's clock is right.
  base::Duration clock_offset{0};
  Weather weather;
  Plan plan;
  std::function<void(int32_t)> on_write;
  // The same for all that run and will run. Nothing: the latest.
  void SetStale(std::optional<Version> version, bool lists = false);
  void SetWeather(const Weather& next);

  // ---- What people do

  static constexpr const char* kSpace = "default";
  void Submit(const std::string& manifest);  // again and again, while its name is taken
  void PatchJob(const std::string& patch);
  void DeleteJob();
  kube::Response Ask(const std::string& method, const std::string& path,
                     const std::string& body = "", const std::string& content_type = "");

  // ---- What can be seen

  Object Job() const;  // or nullptr
  api::JobStatus Status() const;
  bool Is(std::string_view condition) const;
  std::vector<Object> Pods() const;  // of the job, by its label
  // These pods run, and no others do or wait to.
  bool OnlyUp(const std::set<std::string>& names) const;

  // ---- Time

  // Lets the next thing happen. False: nothing is left to.
  bool Step();
  void Found(const std::string& what);  // the first is kept
  std::string finding;
  int64_t steps = 0;
  // For people who look for the cause of a finding: a line each.
  bool tracing = false;
  void Trace(const std::string& line);
  std::string trace;

  Agenda agenda;
  Random random;
  ApiServer server;
  Traffic traffic;
  Kubelet kubelet;
  Collector collector;

 private:
  void Poll(size_t process);

  std::optional<Version> stale_;
  bool stale_lists_ = false;
  class Silent;
  std::unique_ptr<Silent> observer_;
};

}  // namespace backend::sim
