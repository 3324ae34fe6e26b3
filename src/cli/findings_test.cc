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

base::Json Event(const char* reason, const char* message) {
  return base::JsonObject{{"reason", reason}, {"message", message}};
}

api::Job Train(int workers) {
  api::Job job;
  job.metadata.name = "train";
  job.spec.replicas[Role::kWorker] = {.replicas = workers};
  return job;
}

const base::Json kRejectedOne =
    Event("FailedCreatePod", "Error creating: 403 Forbidden: pods \"train-worker-1\" is forbidden: "
                             "exceeded quota: q");

TEST(Findings, ARejectionIsToldOnlyOfReplicasThatAreMissing) {
  const api::Job job = Train(2);
  const Pod there = Waiting(0, "", ""), other = Waiting(1, "", "");
  const std::vector<Trouble> found =
      Refusals(job, {&there}, {kRejectedOne, Event("TFJobRunning", "runs")});
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].what,
            "worker/1 cannot be made: Error creating: 403 Forbidden: pods \"train-worker-1\" is "
            "forbidden: exceeded quota: q");
  EXPECT_NE(found[0].fix.find("quota"), std::string::npos);
  EXPECT_TRUE(Refusals(job, {&there, &other}, {kRejectedOne}).empty());
}

TEST(Findings, ARejectionIsToldThoughOtherPodsWereCreatedSince) {
  const Pod first = Waiting(0, "", ""), third = Waiting(2, "", "");
  EXPECT_EQ(Refusals(Train(3), {&first, &third},
                     {kRejectedOne, Event("SuccessfulCreatePod", "Created pod: train-worker-2")})
                .size(),
            1);
}

TEST(Findings, ARejectionIsOverOnceThatPodWasCreated) {
  const Pod first = Waiting(0, "", "");
  // It is missing now because it was deleted since.
  EXPECT_TRUE(Refusals(Train(2), {&first},
                       {kRejectedOne, Event("SuccessfulCreatePod", "Created pod: train-worker-1")})
                  .empty());
  // The one that was rejected is there, and another is missing.
  const Pod second = Waiting(1, "", "");
  EXPECT_TRUE(Refusals(Train(2), {&second}, {kRejectedOne}).empty());
}

TEST(Findings, ARejectionThatNamesNoPodIsToldOfAllThatAreMissing) {
  const std::vector<Trouble> found =
      Refusals(Train(2), {}, {Event("FailedCreatePod", "admission webhook \"w\" denied it")});
  ASSERT_EQ(found.size(), 1);
  EXPECT_TRUE(found[0].what.starts_with("worker/0, worker/1 cannot be made")) << found[0].what;
}

Pod Starting(const std::string& uid) {
  Pod pod = Waiting(0, "", "");
  pod.uid = uid;
  pod.node = "n1";
  pod.replica.phase = core::Phase::kPending;
  return pod;
}

TEST(Findings, AMountThatFailsIsFoundInTheEventsOfThePod) {
  const Pod pod = Starting("u");
  const std::vector<Warning> warnings = {
      {"u", "FailedScheduling", "0/1 nodes are available"},
      {"u", "FailedMount", "mount failed: -t nfs 10.0.0.9:/data: Connection timed out"},
      {"u", "FailedMount", "Unable to attach or mount volumes: unmounted volumes=[data]"},
      {"u", "Failed", "Error: ErrImagePull"},
      {"another", "FailedMount", "of another pod"}};
  EXPECT_TRUE(NeedsWarnings({&pod}));
  const std::vector<Trouble> found = TroublesOf({&pod}, warnings);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].what,
            "worker/0 waits: FailedMount: mount failed: -t nfs 10.0.0.9:/data: Connection timed "
            "out");
  EXPECT_NE(found[0].fix.find("NFS server"), std::string::npos);
}

TEST(Findings, APodThatRunsHasNoTroubleWhateverHappenedBefore) {
  Pod pod = Starting("u");
  pod.replica.phase = core::Phase::kRunning;
  EXPECT_FALSE(NeedsWarnings({&pod}));
  EXPECT_TRUE(TroublesOf({&pod}, {{"u", "FailedMount", "at first"}}).empty());
}

TEST(Findings, AParameterServerThatEndedIsToldWhileTheJobRuns) {
  api::Job job = Train(1);
  job.status.completed = {{Role::kWorker, 0}};
  EXPECT_TRUE(EndedServers(job).empty());
  job.status.completed.insert({Role::kPs, 1});
  const std::vector<Trouble> found = EndedServers(job);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].what, "ps/1 has ended with exit status 0, and the others wait for it");
  job.status.conditions.push_back({.type = "Succeeded", .status = true});
  EXPECT_TRUE(EndedServers(job).empty());
}

base::Json PodWith(const std::string& status) {
  return base::JsonObject{
      {"metadata", base::JsonObject{{"name", "p"}, {"namespace", "team"}, {"uid", "u"}}},
      {"status", base::ParseJson(status).value()}};
}

TEST(Findings, TheCureNamesTheFlagsOfWhoeverMadeThePod) {
  const base::Json pod = PodWith(R"({"phase":"Pending","containerStatuses":[
      {"name":"c","state":{"waiting":{"reason":"ErrImagePull","message":"no such image"}}}]})");
  const auto fix = [&](PodKind kind) { return StartTrouble(pod, {}, kind)->fix; };
  EXPECT_EQ(StartTrouble(pod, {}, PodKind::kMaster)->what, "ErrImagePull: no such image");
  EXPECT_TRUE(IsAboutTheImage(*StartTrouble(pod, {}, PodKind::kMaster)));
  EXPECT_NE(fix(PodKind::kReplica).find("--pod-file"), std::string::npos);
  EXPECT_NE(fix(PodKind::kMaster).find("--master-image"), std::string::npos);
  EXPECT_NE(fix(PodKind::kOperator).find("trainyard install --image"), std::string::npos);
  EXPECT_NE(fix(PodKind::kServer).find("--server trainyard"), std::string::npos);
  EXPECT_EQ(fix(PodKind::kReader).find("--pod-file"), std::string::npos);
}

TEST(Findings, AContainerThatKeepsFailingIsToldWithItsStatusAndItsLog) {
  const auto trouble = StartTrouble(PodWith(R"({"phase":"Running","containerStatuses":[{"name":"c",
      "state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 10s"}},
      "lastState":{"terminated":{"exitCode":2}}}]})"),
                                    {}, PodKind::kOperator);
  ASSERT_TRUE(trouble);
  EXPECT_EQ(trouble->what, "CrashLoopBackOff: it exits with status 2");
  EXPECT_EQ(trouble->fix, "kubectl -n team logs p --previous tells why");
}

TEST(Findings, APodThatIsBeingMadeHasNoTroubleYet) {
  const base::Json pod = PodWith(R"({"phase":"Pending","containerStatuses":[
      {"name":"c","state":{"waiting":{"reason":"ContainerCreating"}}}]})");
  EXPECT_FALSE(StartTrouble(pod, {}, PodKind::kServer));
  EXPECT_EQ(StartTrouble(pod, {{"u", "FailedMount", "no claim"}}, PodKind::kServer)->what,
            "FailedMount: no claim");
}

}  // namespace
}  // namespace cli
