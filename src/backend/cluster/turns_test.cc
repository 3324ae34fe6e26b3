#include "backend/cluster/turns.h"

#include <gtest/gtest.h>

#include "backend/cluster/objects.h"
#include "backend/cluster/turns_testing.h"
#include "kube/testing.h"

namespace backend::cluster {
namespace {

using base::Json;
using base::JsonObject;
using kube::testing::kStart;
using testing::JobObject;
using testing::kJob;
using testing::kStatusWritten;
using testing::Terminated;

struct TurnsTest : testing::WithTurns {};

TEST_F(TurnsTest, ServicesThatWentWithTheirJobAreNotMadeAgain) {
  turns.Wake(kJob);
  Advance();
  ASSERT_EQ(Asked(), "GET /apis/kubeflow.org/v1/namespaces/team-a/tfjobs/mnist\n");
  transport.Reply(404, R"({"kind":"Status","code":404,"reason":"NotFound"})");
  Advance();
  EXPECT_EQ(Asked().find("POST"), std::string::npos) << Asked();
}

TEST_F(TurnsTest, ServicesOfALivingJobAreMadeAgain) {
  turns.Wake(kJob);
  Advance();
  ASSERT_EQ(transport.asked.size(), 1u);
  transport.Reply(200, base::CompactJson(job));
  Advance();
  EXPECT_EQ(Asked(),
            "POST /api/v1/namespaces/team-a/services\nPOST /api/v1/namespaces/team-a/services\n");
}

TEST_F(TurnsTest, ServicesThatGoWhileTheStatusIsPublishedAreNotMadeAgainInThatTurn) {
  const auto service = [&](int32_t index) {
    Json object = MakeService(*ReadJob(job)->value, {api::Role::kWorker, index});
    JsonObject& metadata = object.get_object()["metadata"].get_object();
    metadata["uid"] = "s";
    metadata["resourceVersion"] = "20";
    return object;
  };
  woken = nullptr;
  services.Apply(service(0));
  services.Apply(service(1));
  job.get_object()["status"].get_object()["conditions"].get_array().pop_back();  // Running
  job.get_object()["metadata"].get_object()["resourceVersion"] = "200";
  jobs.Apply(job);
  woken = &turns;
  turns.Wake(kJob);
  Advance();
  ASSERT_TRUE(Asked().starts_with("PATCH")) << Asked();
  services.Remove(service(0));
  services.Remove(service(1));
  transport.Reply(200, base::CompactJson(job));
  Advance();
  EXPECT_EQ(Asked().find("POST"), std::string::npos) << Asked();
}

// A client that sees the success looks for logs next, and by the pod's phase.
TEST_F(TurnsTest, ASuccessIsToldOnceThePhaseOfThePodTellsItToo) {
  pods.Apply(Worker("0", R"("phase":"Running",)" + Terminated(0), 10));
  Advance();
  EXPECT_EQ(Asked(), "");
  pods.Apply(Worker("0", R"("phase":"Succeeded",)" + Terminated(0), 11));
  Advance();
  EXPECT_EQ(Asked(), kStatusWritten);
}

TEST_F(TurnsTest, ASuccessDoesNotWaitLongForThePhaseOfThePod) {
  pods.Apply(Worker("0", R"("phase":"Running",)" + Terminated(0), 10));
  Advance();
  ASSERT_EQ(turns.next(), kStart + std::chrono::seconds(5));
  Advance(kStart + std::chrono::seconds(5));
  EXPECT_EQ(Asked(), kStatusWritten);
}

TEST_F(TurnsTest, WhatHappensToOthersMeanwhileChangesNothing) {
  pods.Apply(Worker("0", R"("phase":"Running",)" + Terminated(0), 10));
  Advance();
  pods.Apply(Worker("1", R"("phase":"Failed",)" + Terminated(1), 11));
  Advance();
  EXPECT_EQ(Asked(), "");
  pods.Apply(Worker("0", R"("phase":"Succeeded",)" + Terminated(0), 12));
  Advance();
  EXPECT_EQ(Asked(), kStatusWritten);
  EXPECT_NE(transport.asked.front().request.body.find("TFJobSucceeded"), std::string::npos);
}

TEST_F(TurnsTest, AFailureIsAnsweredBeforeThePhaseOfThePodTellsIt) {
  pods.Apply(Worker("1", R"("phase":"Running",)" + Terminated(1), 10));
  Advance();
  EXPECT_EQ(Asked(), kStatusWritten);
  EXPECT_NE(transport.asked.front().request.body.find("TFJobRestarting"), std::string::npos);
}

// A pod as another operator makes one: without our finalizer.
TEST_F(TurnsTest, APodOfAnotherOperatorIsHeldBeforeItsEndCanBeMissed) {
  woken = nullptr;
  pods.Apply(Unheld(Worker("1", R"("phase":"Running")", 10)));
  woken = &turns;
  turns.Wake(kJob);
  Advance();
  transport.Reply(200, base::CompactJson(job));
  Advance();
  ASSERT_TRUE(Asked().starts_with("PATCH /api/v1/namespaces/team-a/pods/mnist-worker-1\n"))
      << Asked();
  const Json patch = kube::testing::J(transport.asked.front().request.body);
  EXPECT_EQ(patch.at("metadata").at("uid"), "p-1");
  EXPECT_EQ(patch.at("metadata").at("finalizers"), base::JsonArray({Json(kFinalizer)}));
}

TEST_F(TurnsTest, APodOfAnotherOperatorThatIsOnItsWayOutIsLeftAlone) {
  woken = nullptr;
  Json pod = Unheld(Worker("1", R"("phase":"Running")", 10));
  pod.at("metadata").get_object()["deletionTimestamp"] = "2026-01-01T00:01:00Z";
  pod.at("metadata").get_object()["deletionGracePeriodSeconds"] = 30;
  pods.Apply(pod);
  woken = &turns;
  turns.Wake(kJob);
  Advance();
  transport.Reply(200, base::CompactJson(job));
  Advance();
  EXPECT_EQ(Asked().find("pods"), std::string::npos) << Asked();
}

TEST_F(TurnsTest, AServerThatIsBackIsAskedWithinASecondHoweverLongItWasAway) {
  pods.Apply(Worker("1", R"("phase":"Failed",)" + Terminated(137), 10));
  base::Time now = kStart;
  base::Duration longest{0};
  while (now < kStart + std::chrono::seconds(15)) {
    Advance(now);
    while (!transport.asked.empty()) transport.Break();
    Advance(now);
    const base::Time next =
        std::max(turns.next().value_or(now), pacer.next().value_or(base::Time()));
    longest = std::max(longest, next - now);
    now = std::max(next, now + std::chrono::milliseconds(1));
  }
  EXPECT_LE(longest, std::chrono::seconds(1));
}

struct ManyJobsTest : testing::WithTurns {
  void Add(const std::string& name_space, const std::string& name) {
    Json one = JobObject();
    JsonObject& metadata = one.get_object()["metadata"].get_object();
    metadata["namespace"] = name_space;
    metadata["name"] = metadata["uid"] = name;
    one.at("spec").at("tfReplicaSpecs").at("Worker").at("template").get_object()["of"] = name;
    jobs.Apply(one);
  }
  ManyJobsTest() {
    for (int i = 0; i < 1000; ++i) Add("team-a", "job-" + std::to_string(i));
  }
};

TEST_F(ManyJobsTest, TheFirstOnesGoOnWhileTheLastOnesWait) {
  do {
    Advance();
  } while (turns.next() == kStart);
  EXPECT_EQ(transport.asked.size(), pacer.window());
  EXPECT_EQ(pacer.waiting(), pacer.window());
  EXPECT_EQ(turns.waiting(), 1000 - 2 * pacer.window());
  // Another namespace is not held up.
  Add("team-b", "mnist");
  Advance();
  EXPECT_EQ(turns.waiting(), 1000 - 2 * pacer.window());
}

// A job in a ConfigMap has a master of its own, which manages its pods.
TEST_F(TurnsTest, PodsOfAJobThatIsKeptInAConfigMapAreLeftAlone) {
  woken = nullptr;
  jobs.Drop(kJob, "u-1", 7);
  for (const char* index : {"0", "1"}) {
    Json pod = Worker(index, R"("phase":"Running")", 21);
    pod.at("metadata").at("ownerReferences").get_array()[0] =
        JsonObject{{"apiVersion", "v1"},  {"kind", "ConfigMap"}, {"name", "mnist-job"},
                   {"uid", "config-map"}, {"controller", true}};
    pods.Apply(pod);
  }
  turns.Wake(kJob);
  Advance();
  EXPECT_EQ(Asked(), "");
}

// The same from the other side: the master of a job in a ConfigMap, beside the operator's TFJob.
TEST_F(TurnsTest, PodsOfATfJobAreLeftAloneByTheMasterOfAJobInAConfigMapOfTheSameName) {
  jobs.Drop(kJob, "u-1", 7);
  Turns master({jobs, pods, services, groups}, pacer, chronicle, {.owner_kind = "ConfigMap"});
  master.Wake(kJob);
  master.Advance(kStart);
  pacer.Advance(kStart);
  EXPECT_EQ(Asked(), "");
}

// The operator has tried a pod of the job, and the server has rejected it for good.
struct RejectedJobTest : testing::WithTurns {
  RejectedJobTest() {
    woken = nullptr;
    for (const char* index : {"0", "1"}) {
      pods.Drop({"team-a", std::string("mnist-worker-") + index}, std::string("p-") + index, 1);
    }
    job.get_object().erase("status");
    Rewrite(20);
    turns.Wake(kJob);
    Advance();
    EXPECT_EQ(Asked(), kTried);
    transport.Reply(422,
                    R"({"kind":"Status","code":422,"reason":"Invalid","message":"bad image"})");
    Advance();
    EXPECT_EQ(Asked(), kStatusWritten);
    EXPECT_NE(transport.asked.front().request.body.find("bad image"), std::string::npos);
    job.get_object()["status"] =
        kube::testing::J(transport.asked.front().request.body).at("status");
    job.at("metadata").get_object()["resourceVersion"] = "21";
    transport.Reply(200, base::CompactJson(job));
    Advance();
    EXPECT_EQ(Asked(), "");
  }
  // A person changes the stored job.
  void Change(int version) {
    Rewrite(version);
    pods.Reached(static_cast<kube::Version>(version));
    services.Reached(static_cast<kube::Version>(version));
    turns.Wake(kJob);
    Advance();
  }

  const std::string kTried = "POST /api/v1/namespaces/team-a/pods?dryRun=All\n";
};

TEST_F(RejectedJobTest, RunsOnceItsSpecIsCorrectedAndItIsResumed) {
  job.at("metadata").get_object()["annotations"] = JsonObject{{"trainyard.dev/life", "1"}};
  job.at("spec").at("tfReplicaSpecs").at("Worker").get_object()["replicas"] = 1;
  Change(22);
  ASSERT_EQ(Asked(), kStatusWritten);
  const Json status = kube::testing::J(transport.asked.front().request.body).at("status");
  EXPECT_EQ(status.at("life"), 1);
}

// Whatever rejected the pod may accept it now: an admission webhook, say.
TEST_F(RejectedJobTest, IsTriedAgainWhenItIsResumed) {
  job.at("metadata").get_object()["annotations"] = JsonObject{{"trainyard.dev/life", "1"}};
  Change(22);
  EXPECT_EQ(Asked(), kStatusWritten);
}

TEST_F(RejectedJobTest, DoesNotStandInTheWayOfAnotherJobOfItsName) {
  job.at("metadata").get_object()["uid"] = "u-2";
  job.get_object().erase("status");
  Change(22);
  EXPECT_EQ(Asked(), kTried);
}

TEST_F(RejectedJobTest, IsNotTriedAgainWhileNobodyChangesIt) {
  Change(22);
  EXPECT_EQ(Asked(), "");
}

TEST_F(ManyJobsTest, AJobThatHasBegunIsPublishedBeforeNewJobsGetTheirPods) {
  do {
    Advance();
  } while (turns.next() == kStart);
  ASSERT_GT(turns.waiting(), 0u);
  pods.Apply(Worker("1", R"("phase":"Failed",)" + Terminated(137), 10));
  Advance();
  transport.Reply(201, "{}");  // of a dry run
  Advance();
  EXPECT_EQ(transport.asked.back().request.path,
            "/apis/kubeflow.org/v1/namespaces/team-a/tfjobs/mnist/status");
}

// kubectl delete --cascade=orphan: the owner is taken off the pods, and we hear of that first.
TEST_F(TurnsTest, PodsWhoseJobIsGoneAreHeldByNobodyThoughTheirOwnerWentBefore) {
  JsonObject& metadata = job.at("metadata").get_object();
  metadata["deletionTimestamp"] = "2026-01-01T00:01:00Z";
  metadata["finalizers"] = base::JsonArray{Json("orphan")};
  Rewrite(20);
  woken = nullptr;
  for (const char* index : {"0", "1"}) {
    Json pod = Worker(index, R"("phase":"Running")", 21);
    pod.at("metadata").get_object().erase("ownerReferences");
    pods.Apply(pod);
  }
  turns.Wake(kJob);
  Advance();
  ASSERT_EQ(Asked(), "GET /apis/kubeflow.org/v1/namespaces/team-a/tfjobs/mnist\n");
  transport.Reply(200, base::CompactJson(job));
  Advance();
  EXPECT_EQ(Asked(),
            "PATCH /api/v1/namespaces/team-a/pods/mnist-worker-0\n"
            "PATCH /api/v1/namespaces/team-a/pods/mnist-worker-1\n");
}

}  // namespace
}  // namespace backend::cluster
