// One pass of core::Reconcile over a job, as a class of several files: reconcile.cc (the pass as a
// whole), pass_failures.cc (what is judged) and pass_actions.cc (what is to be done).
//
// The status is changed first and the actions are derived from it at the end. Lives for one call.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/failures.h"
#include "core/reconcile.h"
#include "core/view.h"

namespace core {

class Pass {
 public:
  Pass(const api::Job& job, const Observed& observed, const Policy& policy, base::Time now);
  Decision Run();

 private:
  const std::string& Name() const { return job_.metadata.name; }
  std::string FullName() const { return job_.metadata.name_space + "/" + Name(); }
  void Set(std::string type, std::string reason, std::string message, bool value = true);
  void Emit(bool warning, std::string reason, std::string message);
  void LookAgain(base::Time time);

  void Judge();
  void CorrectTimes();
  void TakeUpAttempts();
  void FindMissed();
  void Suspend();
  void Resume();
  void RaiseAll();
  void RaiseGang();
  api::Unit& RaiseAlone(api::ReplicaId id);
  void Reshape();
  void ForgetOutOfRange();
  void RememberEndings();
  void EmitExit(api::ReplicaId id, const Ending& ending);
  void Succeed();
  void TakeInData();
  bool DataIsLost();
  void Count();
  bool AnyDriverActive() const;

  // pass_failures.cc
  void Fail(const std::string& message, api::Verdict verdict, bool warning = false);
  void JudgeFailures();
  void JudgeOne(const Failure& cause, const std::vector<Failure>& failures,
                const std::optional<std::set<api::ReplicaId>>& group);
  int32_t PreemptionsInRow(const Failure& cause) const;
  void PauseFor(api::Unit& unit, const Failure& cause, bool preempted);
  void Record(const Failure& cause, const std::vector<Failure>& failures);
  int32_t RestartsInPlace() const;
  bool PastRestartsInPlace();
  bool PastDeadline();
  void CheckStartDeadline();
  bool MustStartInTime(api::ReplicaId id) const;

  // pass_actions.cc
  void Act();
  void AskToEnd(const ReplicaState& r, bool graceful, bool finish = false);
  void CleanUp();

  const api::Job& job_;
  const Policy& policy_;
  const base::Time now_;
  const std::optional<DataView>& data_;
  std::vector<ReplicaState> replicas_;  // sorted, so that nothing depends on the order they came in
  api::JobStatus status_;               // what will be published
  const View view_{job_, status_, replicas_, now_, data_ ? &*data_ : nullptr};
  bool restarted_ = false;
  Decision decision_;
};

}  // namespace core
