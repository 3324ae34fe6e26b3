// The scheduler and the kubelets of a simulated cluster: pods are bound to nodes, start, run, end
// and confirm their end, in times drawn from the seed.
//
// What a container does is not decided here: it runs until somebody says Exit, or until it is asked
// to stop. A client of the API server like any other. One thread.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "backend/sim/agenda.h"
#include "backend/sim/api_server.h"
#include "backend/sim/random.h"

namespace backend::sim {

class Kubelet {
 public:
  // Begins to look after pods. All must outlive the last entry of the agenda.
  Kubelet(Agenda& agenda, ApiServer& server, Random& random);
  Kubelet(const Kubelet&) = delete;

  // How a container ends.
  struct Exit {
    int32_t code = 0;             // 128 + signal: killed
    std::string reason = "";      // "OOMKilled"; empty: as the code says
    std::string disruption = "";  // with a condition DisruptionTarget of this reason, if any
  };

  // The containers of this running pod end now. False: it does not run.
  bool End(const std::string& name_space, const std::string& name, const Exit& exit);
  // The pod fails without its containers having said anything: its node was short of memory.
  void Evict(const std::string& name_space, const std::string& name);
  // The scheduler takes its place away: the condition, then an ordinary deletion.
  void Preempt(const std::string& name_space, const std::string& name);
  // Its node is lost: it is deleted, nobody confirms, and in the end it is dropped by force.
  void LoseNode(const std::string& name_space, const std::string& name);

  // How many pods the nodes have places for. A pod without one is unschedulable, and tried again.
  size_t places = SIZE_MAX;

  // What a container that is asked to stop exits with.
  int32_t stopped_with = 143;

 private:
  struct Run {
    std::string name_space, name;
    bool binding = false, bound = false, starting = false, running = false;
    bool ended = false, lost = false;
    base::Time started;
    std::optional<base::Time> stops;  // asked to, at the latest by then
    int64_t restarts = 0;
  };

  void See(const Change& change);
  void Bind(Run& run, const base::Json& pod);
  void Stop(const std::string& uid, const base::Json& pod);
  // Does it later, if the pod of this uid is still there.
  void Later(base::Duration in, const std::string& uid,
             std::function<void(Run&, const base::Json&)> deed);
  void Start(Run& run, const base::Json& pod);
  void Finish(Run& run, const base::Json& pod, const Exit& exit);
  void Write(const Run& run, const base::Json& pod, base::JsonObject status);
  void Confirm(const std::string& uid);
  void SetDisruption(const base::Json& pod, const std::string& reason);
  const Object Pod(const std::string& name_space, const std::string& name) const;

  Agenda& agenda_;
  ApiServer& server_;
  Random& random_;
  std::map<std::string, Run> runs_;  // by uid
};

}  // namespace backend::sim
