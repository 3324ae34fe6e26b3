#include "core/success_policy.h"

#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

// What the 19 rows of training-operator's status table come to here (tfjob.md 2.8). Restart policy
// Never unless said.
struct Row {
  const char* name;
  api::Job job;
  std::vector<ReplicaState> replicas;
  const char* condition;
};

std::vector<ReplicaState> Workers(std::vector<Phase> phases) {
  std::vector<ReplicaState> out;
  for (Phase phase : phases) out.push_back(Worker(static_cast<int32_t>(out.size()), phase));
  return out;
}
std::vector<ReplicaState> With(std::vector<ReplicaState> some, std::vector<ReplicaState> more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

constexpr Phase kR = Phase::kRunning, kS = Phase::kSucceeded, kF = Phase::kFailed;

api::Job All(int32_t workers) {
  api::Job job = MakeJob({.worker = workers}, RestartPolicy::kNever);
  job.spec.success_policy = api::SuccessPolicy::kAllWorkers;
  return job;
}
api::Job Plain(Counts counts) { return MakeJob(counts, RestartPolicy::kNever); }

TEST(SuccessPolicy, AgreesWithTheStatusTableOfTrainingOperator) {
  const std::vector<ReplicaState> ps = {Ps(0, kR), Ps(1, kR)};
  const Counts four{.ps = 2, .worker = 4}, led{.chief = 1, .ps = 2, .worker = 4};
  for (const Row& row : std::vector<Row>{
           {"chief done",
            Plain({.chief = 1, .worker = 1}),
            {Chief(kS), Worker(0, kS)},
            "Succeeded"},
           {"chief runs", Plain({.chief = 1}), {Chief(kR)}, "Running"},
           {"chief failed", Plain({.chief = 1}), {Chief(kF)}, "Failed"},
           {"worker failed", Plain({.worker = 1}), Workers({kF}), "Failed"},
           {"worker done", Plain({.worker = 1}), Workers({kS}), "Succeeded"},
           {"worker runs", Plain({.worker = 1}), Workers({kR}), "Running"},
           {"others done", Plain(four), With(ps, Workers({kR, kR, kS, kS})), "Running"},
           {"two failed", Plain(four), With(ps, Workers({kR, kR, kF, kF})), "Failed"},
           {"two done, two failed", Plain(four), With(ps, Workers({kF, kF, kS, kS})), "Failed"},
           {"worker 0 done", Plain(four), With(ps, Workers({kS, kR, kR, kR})), "Succeeded"},
           {"all: worker 0 done", All(4), Workers({kS, kR, kR, kR}), "Running"},
           {"all: all done", All(4), Workers({kS, kS, kS, kS}), "Succeeded"},
           {"all: one failed", All(4), Workers({kS, kR, kR, kF}), "Failed"},
           // There Running is in the list too, as False.
           {"workers failed", Plain(led), With(ps, With({Chief(kR)}, Workers({kF, kF, kF, kF}))),
            "Failed"},
           {"workers done", Plain(led), With(ps, With({Chief(kR)}, Workers({kS, kS, kS, kS}))),
            "Running"},
           {"ps failed", Plain(led),
            With({Ps(0, kR), Ps(1, kF), Chief(kR)}, Workers({kS, kS, kS, kS})), "Failed"},
           {"chief failed, workers done", Plain(led),
            With(ps, With({Chief(kF)}, Workers({kS, kS, kS, kS}))), "Failed"},
           {"chief done, workers failed", Plain(led),
            With(ps, With({Chief(kS)}, Workers({kF, kF, kF, kF}))), "Succeeded"},
           {"retryable", MakeJob(led),
            With(ps, With({Exited(Chief(kR), 130)}, {Worker(0, kR), Worker(1, kR), Worker(2, kR),
                                                     Exited(Worker(3, kR), 130)})),
            "Restarting"},
       }) {
    const Decision d =
        Reconcile(row.job, Seen(row.replicas), {.end_leftovers = false}, kStart + 1min);
    EXPECT_TRUE(api::Has(d.status, row.condition)) << row.name << ": " << ConditionsOf(d.status);
    EXPECT_FALSE(api::IsTerminal(d.status) && api::Has(d.status, "Running")) << row.name;
    EXPECT_FALSE(api::Has(d.status, "Succeeded") && api::Has(d.status, "Failed")) << row.name;
  }
}

TEST(SuccessPolicy, WaitsForEveryChief) {
  const api::Job job = MakeJob({.chief = 2, .worker = 1});
  EXPECT_FALSE(IsSuccess(job, Completed({kChief0, kWorker0})));
  EXPECT_TRUE(IsSuccess(job, Completed({kChief0, Id(Role::kChief, 1)})));
}

TEST(SuccessPolicy, TreatsAMasterAsAChief) {
  const api::Job job = MakeJob({.worker = 1, .master = 1});
  EXPECT_FALSE(IsSuccess(job, Completed({kWorker0})));
  EXPECT_TRUE(IsSuccess(job, Completed({Id(Role::kMaster, 0)})));
}

TEST(SuccessPolicy, AllWorkersDoNotMatterWhereAChiefLeads) {
  api::Job job = MakeJob({.chief = 1, .worker = 2});
  job.spec.success_policy = api::SuccessPolicy::kAllWorkers;
  EXPECT_TRUE(IsSuccess(job, Completed({kChief0})));
}

TEST(SuccessPolicy, AJobOfServersOnlyNeverSucceeds) {
  EXPECT_FALSE(IsSuccess(MakeJob({.ps = 1}), Completed({kPs0})));
  EXPECT_FALSE(IsSuccess(MakeJob({.evaluator = 1}), Completed({kEvaluator0})));
}

TEST(SuccessPolicy, AChiefOfWhichNoneAreWantedDoesNotLead) {
  api::Job job = MakeJob({.worker = 1});
  job.spec.replicas[Role::kChief] = {.replicas = 0};
  EXPECT_TRUE(IsSuccess(job, Completed({kWorker0})));
}

TEST(SuccessPolicy, WaitsForTheEvaluatorWhenAsked) {
  World world(MakeJob({.worker = 2, .evaluator = 1}));
  world.job.extensions.wait_for_evaluator = true;
  world.Settle().End(kWorker0, 0).End(kWorker1, 0).Settle();
  EXPECT_FALSE(api::IsTerminal(world.job.status));
  EXPECT_TRUE(world.Live().contains(kEvaluator0));
  EXPECT_TRUE(api::Has(world.End(kEvaluator0, 0).Settle().job.status, "Succeeded"));
}

TEST(SuccessPolicy, AGangThatIsDoneIsNotRunAgainWhileTheEvaluatorIsAwaited) {
  World world(MakeJob({.worker = 2, .evaluator = 1}));
  world.job.extensions.wait_for_evaluator = true;
  world.Settle().End(kWorker0, 0).Settle().End(kWorker1, 137).Settle();
  EXPECT_EQ(world.Live().size(), 1u);
  world.job.spec.replicas[Role::kWorker].replicas = 3;
  EXPECT_EQ(world.Settle().Live().size(), 1u);
  world.End(kEvaluator0, 137).Settle();
  EXPECT_EQ(world.Live(), (std::map<ReplicaId, int32_t>{{kEvaluator0, world.job.status.attempt}}));
}

TEST(SuccessPolicy, WorkThatIsDoneIsNotDoneAgainBecauseTheJobWasScaledAMomentLater) {
  World world(MakeJob({.worker = 2}));
  world.Settle().End(kWorker0, 0);
  world.job.spec.replicas[Role::kWorker].replicas = 3;
  EXPECT_TRUE(api::Has(world.Settle().job.status, "Succeeded"));
}

TEST(SuccessPolicy, CountsLeftoversAsSucceeded) {
  World world(MakeJob({.chief = 1, .ps = 1, .worker = 2}));
  world.Settle().Settle().End(kChief0, 0).Settle();
  EXPECT_EQ(world.job.status.replica_statuses[Role::kWorker], (api::ReplicaStatus{.succeeded = 2}));
  EXPECT_EQ(world.job.status.replica_statuses[Role::kPs], (api::ReplicaStatus{.succeeded = 1}));
}

}  // namespace
}  // namespace core
