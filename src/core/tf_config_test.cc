#include "core/tf_config.h"

#include <gtest/gtest.h>

#include "core/dialect.h"
#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

AddressOf InCluster(const std::string& job, const std::string& domain = "", int32_t port = 2222) {
  return [=](ReplicaId id) {
    return job + "-" + api::ToString(id) + ".ns3.svc" + (domain.empty() ? "" : "." + domain) + ":" +
           std::to_string(port);
  };
}

TEST(TfConfig, IsDenseByDefault) {
  EXPECT_EQ(
      TfConfig(MakeJob({.ps = 1, .worker = 1, .evaluator = 1}), kWorker0, InCluster("test-tfjob")),
      R"({"cluster":{"evaluator":["test-tfjob-evaluator-0.ns3.svc:2222"],"ps":["test-tfjob-ps-0.ns3.svc:2222"],"worker":["test-tfjob-worker-0.ns3.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"})");
}

TEST(TfConfig, SortsTheRoles) {
  EXPECT_EQ(
      TfConfig(MakeJob({.ps = 2, .worker = 2, .master = 1}), kPs1,
               InCluster("j", "cluster.local", 80)),
      R"({"cluster":{"master":["j-master-0.ns3.svc.cluster.local:80"],"ps":["j-ps-0.ns3.svc.cluster.local:80","j-ps-1.ns3.svc.cluster.local:80"],"worker":["j-worker-0.ns3.svc.cluster.local:80","j-worker-1.ns3.svc.cluster.local:80"]},"task":{"type":"ps","index":1},"environment":"cloud"})");
}

TEST(TfConfig, HasAChiefKeyOnlyWhereThereIsAChief) {
  EXPECT_EQ(
      TfConfig(MakeJob({.chief = 1, .worker = 1}), kChief0, InCluster("j")),
      R"({"cluster":{"chief":["j-chief-0.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222"]},"task":{"type":"chief","index":0},"environment":"cloud"})");
  EXPECT_EQ(
      TfConfig(MakeJob({.worker = 2}), kWorker1, InCluster("j")),
      R"({"cluster":{"worker":["j-worker-0.ns3.svc:2222","j-worker-1.ns3.svc:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"})");
}

TEST(TfConfig, IsNotSetForOneReplicaAlone) {
  EXPECT_EQ(TfConfig(MakeJob({.worker = 1}), kWorker0, InCluster("j")), std::nullopt);
  EXPECT_EQ(TfConfig(MakeJob({.ps = 1}), kPs0, InCluster("j")), std::nullopt);
  EXPECT_TRUE(TfConfig(MakeJob({.ps = 1, .worker = 1}), kPs0, InCluster("j")));
  EXPECT_TRUE(TfConfig(MakeJob({.chief = 1, .worker = 1}), kWorker0, InCluster("j")));
}

TEST(TfConfig, IsSetForOneReplicaAloneAsInVersionsBeforeV1) {
  api::Job job = MakeJob({.chief = 1});
  job.spec.tf_config_for_single_replica = true;
  EXPECT_EQ(
      TfConfig(job, kChief0, InCluster("j")),
      R"({"cluster":{"chief":["j-chief-0.ns3.svc:2222"]},"task":{"type":"chief","index":0},"environment":"cloud"})");
}

TEST(TfConfig, LeavesTheEvaluatorOutWhenAsked) {
  api::Job job = MakeJob({.worker = 1, .evaluator = 1});
  job.extensions.evaluator_in_cluster = false;
  EXPECT_EQ(
      TfConfig(job, kEvaluator0, InCluster("j")),
      R"({"cluster":{"worker":["j-worker-0.ns3.svc:2222"]},"task":{"type":"evaluator","index":0},"environment":"cloud"})");
}

TEST(TfConfig, IsSparseForDynamicWorkers) {
  api::Job job = MakeJob({.chief = 1, .ps = 2, .worker = 2});
  job.spec.enable_dynamic_worker = true;
  EXPECT_EQ(
      TfConfig(job, kWorker1, InCluster("j")),
      R"({"cluster":{"worker":{"1":"j-worker-1.ns3.svc:2222"},"ps":["j-ps-0.ns3.svc:2222","j-ps-1.ns3.svc:2222"]},"task":{"type":"worker","index":1}})");
  EXPECT_EQ(
      TfConfig(job, kPs1, InCluster("j")),
      R"({"cluster":{"worker":{},"ps":["j-ps-1.ns3.svc:2222"]},"task":{"type":"ps","index":1}})");
  // Upstream leaves a chief with an empty cluster.
  EXPECT_EQ(
      TfConfig(job, kChief0, InCluster("j")),
      R"({"cluster":{"worker":{},"ps":["j-ps-0.ns3.svc:2222","j-ps-1.ns3.svc:2222"],"chief":["j-chief-0.ns3.svc:2222"]},"task":{"type":"chief","index":0}})");
}

TEST(TfConfig, IsSparseWithNullWhereThereAreNoParameterServers) {
  api::Job job = MakeJob({.worker = 2});
  job.spec.enable_dynamic_worker = true;
  EXPECT_EQ(
      TfConfig(job, kWorker0, InCluster("j")),
      R"({"cluster":{"worker":{"0":"j-worker-0.ns3.svc:2222"},"ps":null},"task":{"type":"worker","index":0}})");
}

AddressOf Bare(const char* prefix, int32_t port) {
  return [=](ReplicaId id) {
    return prefix + std::string(api::LowerName(id.role)) + std::to_string(id.index) + ":" +
           std::to_string(port);
  };
}

api::Job Speaking(Dialect dialect, api::Job job) {
  job.extensions.dialect = dialect;
  return job;
}

TEST(TfConfig, OfTfSpawnerHasNoEnvironmentAndIsSetForOneToo) {
  EXPECT_EQ(
      TfConfig(Speaking(Dialect::kTfSpawner, MakeJob({.worker = 2})), kWorker0, Bare("", 1999)),
      R"({"cluster":{"worker":["worker0:1999","worker1:1999"]},"task":{"type":"worker","index":0}})");
  EXPECT_EQ(
      TfConfig(Speaking(Dialect::kTfSpawner, MakeJob({.worker = 1})), kWorker0, Bare("a-", 1999)),
      R"({"cluster":{"worker":["a-worker0:1999"]},"task":{"type":"worker","index":0}})");
}

TEST(TfConfig, OfElasticDlLeavesTheEvaluatorOut) {
  EXPECT_EQ(
      TfConfig(Speaking(Dialect::kElasticDl, MakeJob({.chief = 1, .worker = 1, .evaluator = 1})),
               kEvaluator0, Bare("", 3333)),
      R"({"cluster":{"chief":["chief0:3333"],"worker":["worker0:3333"]},"task":{"type":"evaluator","index":0}})");
}

TEST(TfConfig, TellsParameterServersOfTheWorkersThatMayCome) {
  api::Job job = MakeJob({.chief = 1, .ps = 1, .worker = 1});
  job.extensions.elastic = api::Elastic{1, 3};
  EXPECT_EQ(
      TfConfig(job, kPs0, InCluster("j")),
      R"({"cluster":{"chief":["j-chief-0.ns3.svc:2222"],"ps":["j-ps-0.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222","j-worker-1.ns3.svc:2222","j-worker-2.ns3.svc:2222"]},"task":{"type":"ps","index":0},"environment":"cloud"})");
  EXPECT_EQ(
      TfConfig(job, kChief0, InCluster("j")),
      R"({"cluster":{"chief":["j-chief-0.ns3.svc:2222"],"ps":["j-ps-0.ns3.svc:2222"],"worker":["j-worker-0.ns3.svc:2222"]},"task":{"type":"chief","index":0},"environment":"cloud"})");
}

TEST(TfConfig, IsNotSetForAJobThatAsksForNone) {
  api::Job job = MakeJob({.worker = 2});
  job.extensions.tf_config = false;
  EXPECT_EQ(TfConfig(job, kWorker0, InCluster("j")), std::nullopt);
}

TEST(TfConfig, LeavesOutARoleOfWhichNoneAreWanted) {
  api::Job job = MakeJob({.worker = 2});
  job.spec.replicas[Role::kPs] = {.replicas = 0};
  EXPECT_EQ(TfConfig(job, kWorker0, InCluster("j")),
            TfConfig(MakeJob({.worker = 2}), kWorker0, InCluster("j")));
}

}  // namespace
}  // namespace core
