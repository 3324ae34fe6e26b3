// Everything that the operator is put through in the simulator, each trial with a name that brings
// it back.
//
//   crash/WORKLOAD/WRITE/FAULT   one fault at one write
//   party/WORKLOAD/WRITE/DEED    somebody else does something at one write
//   unseen/WHAT                  something happens while the operator is away
//   storm/SEED                   faults, stale views and kills by chance, then calm
//   travel/SEED                  the same, and lists too are of the past
//   two/SEED                     two operators at once, each sure to be the only one
//
// The first two are complete: every write of every workload. All are deterministic.
#pragma once

#include <functional>
#include <string>

#include "backend/sim/cluster_life.h"

namespace backend::sim {

struct Trial {
  std::string name;
  std::string finding;  // empty: as it should be
  ClusterLife life;
};

// Whether to go on.
using Report = std::function<bool(const Trial&)>;

void CrashTrials(const Report& report);
void PartyTrials(const Report& report);
void UnseenTrials(const Report& report);
void StormTrials(uint64_t first_seed, uint64_t count, const Report& report);
void TravelTrials(uint64_t first_seed, uint64_t count, const Report& report);
void TwoTrials(uint64_t first_seed, uint64_t count, const Report& report);

// One of them again, with a trace. An unknown name is a finding.
Trial TrialAgain(const std::string& name);

}  // namespace backend::sim
