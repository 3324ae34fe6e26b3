#include "cli/findings.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

using api::Role;
using backend::cluster::Pod;

Pod Waiting(int index, const std::string& reason, const std::string& message) {
  Pod pod;
  pod.replica.id = {Role::kWorker, index};
  pod.trouble = reason;
  pod.trouble_message = "Error pod x container tensorflow waiting message: " + message;
  return pod;
}

TEST(Findings, OneTroubleIsToldOnceForAllWhoHaveIt) {
  const Pod a = Waiting(0, "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.");
  const Pod b = Waiting(1, "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.");
  const Pod c = Waiting(2, "ErrImagePull", "not found");
  const Pod fine = Waiting(3, "", "");
  const std::vector<Trouble> found = TroublesOf({&a, &b, &c, &fine});
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].what, "worker/2 waits: ErrImagePull: not found");
  EXPECT_NE(found[0].fix.find("--image"), std::string::npos);
  EXPECT_EQ(found[1].what,
            "worker/0, worker/1 wait: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.");
  EXPECT_NE(found[1].fix.find("ask for less"), std::string::npos);
}

TEST(Findings, ASilentNodeIsNamedWithWhatHelps) {
  const Pod silent = Waiting(1, "NodeNotReady", "node n1 does not answer");
  const std::vector<Trouble> found = TroublesOf({&silent});
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].what, "worker/1 waits: NodeNotReady: node n1 does not answer");
  EXPECT_NE(found[0].fix.find("kubectl delete node"), std::string::npos);
}

TEST(Findings, AReplicaThatLostAPeerWaitsForWordOfThePeersNode) {
  Pod lost = Waiting(0, "", ""), runs = Waiting(1, "", "");
  lost.replica.phase = core::Phase::kFailed;
  lost.replica.ending = core::Ending{.code = 1, .last_lines = {"UnavailableError: Socket closed"}};
  runs.replica.phase = core::Phase::kRunning;
  const std::vector<Trouble> found = TroublesOf({&lost, &runs});
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].what,
            "worker/0 lost contact with a peer: waiting until it is known whether the node of "
            "worker/1 still answers");
  EXPECT_TRUE(TroublesOf({&lost}).empty());
}

TEST(Findings, EachKnownTroubleHasItsOwnFix) {
  EXPECT_NE(FixFor("Unschedulable", "pod has unbound immediate PersistentVolumeClaims").find("pvc"),
            std::string::npos);
  EXPECT_NE(FixFor("Unschedulable", "Insufficient nvidia.com/gpu").find("--gpus"),
            std::string::npos);
  EXPECT_NE(FixFor("FailedCreatePod", "exceeded quota: q").find("quota"), std::string::npos);
  EXPECT_NE(FixFor("FailedCreatePod", "violates PodSecurity \"restricted\"").find("--pod-file"),
            std::string::npos);
  EXPECT_NE(FixFor("FailedCreatePod", "admission webhook \"w\" denied the request").find("webhook"),
            std::string::npos);
  EXPECT_EQ(FixFor("SomethingNew", "nobody has seen it yet"), "");
}

TEST(Findings, ARefusalIsToldOnlyOfReplicasThatAreMissing) {
  api::Job job;
  job.spec.replicas[Role::kWorker] = {.replicas = 2};
  const std::vector<base::Json> events = {
      base::JsonObject{{"reason", "FailedCreatePod"}, {"message", "old"}},
      base::JsonObject{{"reason", "SuccessfulCreatePod"}, {"message", "made"}},
      base::JsonObject{{"reason", "FailedCreatePod"}, {"message", "exceeded quota: q"}},
      base::JsonObject{{"reason", "TFJobRunning"}, {"message", "runs"}}};
  const Pod there = Waiting(0, "", "");
  const std::vector<Trouble> found = Refusals(job, {&there}, events);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].what, "worker/1 cannot be made: exceeded quota: q");
  const Pod other = Waiting(1, "", "");
  EXPECT_TRUE(Refusals(job, {&there, &other}, events).empty());
  EXPECT_TRUE(Refusals(job, {&there}, {events[0], events[1]}).empty()) << "it was made since";
}

}  // namespace
}  // namespace cli
