// The connection of one client process to the model of the API server, with faults on the way.
//
// Answers and stream data come from the agenda, never from within a call. Destroying it is the
// death of the process: nothing is called any more, but what it had sent still arrives.
//
// One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "backend/sim/agenda.h"
#include "backend/sim/api_server.h"
#include "backend/sim/faults.h"
#include "backend/sim/random.h"
#include "backend/sim/traffic.h"
#include "kube/transport.h"

namespace backend::sim {

class SimTransport : public kube::Transport {
 public:
  // All must outlive the last entry of the agenda.
  struct World {
    Agenda& agenda;
    ApiServer& server;
    Traffic& traffic;
    Random& random;
  };

  // `killed` is called, from the agenda, when a fault of the plan kills the process; from the fault
  // on nothing more is sent or answered.
  SimTransport(World world, std::function<void()> killed);
  ~SimTransport() override;

  void Send(kube::Request request, base::Duration timeout, Answer answer) override;
  std::unique_ptr<kube::Stream> Open(kube::Request request, base::Duration silence, Data data,
                                     Answer end) override;

  void SetWeather(const Weather& weather);
  void SetPlan(Plan plan);
  // From now on watches are answered as by a server that is behind, at this version; nothing: not
  // behind. Lists too only if `lists`: those of a sound API server are always the latest.
  void SetStale(std::optional<Version> version, bool lists);
  // Called when a write leaves, before any fault strikes it, with its number.
  void OnWrite(std::function<void(int32_t)> hook);
  // Every stream breaks; with 410 when history is gone too.
  void CutStreams(bool gone);
  // Nothing comes through for so long.
  void Stall(base::Duration duration);
  // Whether anything was answered or told since this was last asked.
  bool TakeNews();

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace backend::sim
