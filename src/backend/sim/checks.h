// What must be true of every life, checked against the truth about the world.
//
// Written without the core's own rules: the tables of what an ending means, how long a pause is and
// who belongs together are here a second time, so that a fault in the one shows against the other.
#pragma once

#include <map>
#include <set>
#include <string>

#include "backend/sim/world.h"
#include "controller/step.h"

namespace backend::sim {

class Checks : public Witness {
 public:
  Checks(World& world, const core::Policy& policy) : world_(world), policy_(policy) {}

  void Publishing(const api::JobStatus& status) override;
  void Performing(const core::Action& action) override;

  // A turn is over; `undisturbed`: no fault had a part in it.
  void TurnOver(const controller::Turn& turn, bool undisturbed);
  // Somebody changed the stored job by hand.
  void ByHand();
  // The world has come to rest.
  void AtEnd();

  void Found(const std::string& what);
  const std::string& finding() const { return finding_; }

 private:
  struct Row {
    int32_t failures = 0, disruptions = 0;
  };
  enum class Sort { kFine, kDisruption, kRetryable, kPermanent };
  struct Bad {
    const Incarnation* one;
    Sort sort;
    bool timeless;  // nobody knows when
  };

  bool InGang(api::ReplicaId id) const;
  bool InRange(api::ReplicaId id) const;
  api::Unit UnitIn(const api::JobStatus& status, api::ReplicaId id) const;
  Sort SortOf(const Incarnation& one) const;
  // By what was seen, it took something else for the end of the data.
  bool IsMisled(const Incarnation& one) const;
  bool Decides(api::ReplicaId id) const;
  bool Excused(api::ReplicaId id) const;
  std::set<api::ReplicaId> Coordinators() const;
  // All that decide over the job's success had ended well when the controller last looked.
  bool HadFinished(const api::JobStatus& status) const;
  // Who ended badly, without our asking, of this replica (nothing: of the gang) in this attempt.
  std::vector<Bad> BadEndings(std::optional<api::ReplicaId> id, int32_t attempt) const;

  void CheckConditions(const api::JobStatus& before, const api::JobStatus& after);
  void CheckCounters(const api::JobStatus& before, const api::JobStatus& after);
  void CheckRaises(const api::JobStatus& before, const api::JobStatus& after);
  void CheckCause(const std::vector<Bad>& bad, bool counted_as_failure);
  void CheckPause(api::ReplicaId key, const std::vector<Bad>& bad, const api::Unit& after);
  void ForgetRows(const api::JobStatus& status);
  void CheckFailed(const api::JobStatus& before, const api::JobStatus& after);
  void CheckSucceeded(const api::JobStatus& after);
  void CheckStart(const core::Start& start);
  void CheckStop(const core::Stop& stop);
  void CheckRemove(const core::Remove& remove);

  World& world_;
  const core::Policy& policy_;
  std::string finding_;
  std::map<api::ReplicaId, Row> rows_;  // of a gang: under worker 0 or the chief, its first
  bool planned_allowed_ = true;  // somebody asked for a change since the last planned restart
};

}  // namespace backend::sim
