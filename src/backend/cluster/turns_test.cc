#include "backend/cluster/turns.h"

#include <gtest/gtest.h>

#include "backend/cluster/objects.h"
#include "backend/cluster/testing.h"
#include "kube/testing.h"

namespace backend::cluster {
namespace {

using base::Json;
using base::JsonObject;
using kube::testing::kStart;
using testing::ContainerState;
using testing::JobObject;
using testing::PodObject;
using testing::Terminated;

const Key kJob{"team-a", "mnist"};

// A job whose workers run, and whose status says so: a turn has nothing to publish.
struct TurnsTest : ::testing::Test {
  kube::testing::FakeTransport transport;
  Turns* woken = nullptr;
  const std::function<void(const Key&)> wake = [this](const Key& key) {
    if (woken) woken->Wake(key);
  };
  Collection<StoredJob> jobs{ReadJob, wake};
  Collection<Pod> pods{ReadPod, wake};
  Collection<Service> services{ReadService, wake};
  Collection<PodGroup> groups{ReadPodGroup, wake};
  Pacer pacer{transport};
  testing::Ears chronicle;
  Turns turns{{jobs, pods, services, groups}, pacer, chronicle, {}};
  Json job = JobObject();

  static Json Worker(const std::string& index, const std::string& status, int version = 9) {
    Json pod = PodObject("", status);
    JsonObject& metadata = pod.get_object()["metadata"].get_object();
    metadata["name"] = "mnist-worker-" + index;
    metadata["uid"] = "p-" + index;
    metadata["resourceVersion"] = std::to_string(version);
    metadata["labels"].get_object()[kIndexLabel] = index;
    metadata["labels"].get_object()[kAttemptLabel] = "0";
    return pod;
  }

  static Json Unheld(Json pod) {
    pod.at("metadata").get_object().erase("finalizers");
    return pod;
  }

  TurnsTest() {
    const std::string running = R"("phase":"Running",)" +
                                ContainerState(R"("running":{"startedAt":"2026-01-01T00:00:05Z"})");
    core::Observed observed;
    for (const char* index : {"0", "1"}) {
      const Json pod = Worker(index, running);
      pods.Apply(pod);
      observed.replicas.push_back(ReadPod(pod)->replica);
    }
    const core::Policy policy{.end_leftovers = false, .clock_resolution = std::chrono::seconds(1)};
    const api::JobStatus status =
        core::Reconcile(*ReadJob(job)->value, observed, policy, kStart).status;
    job.get_object()["status"] = api::EncodeStatus(status);
    jobs.Apply(job);
    woken = &turns;
  }

  void Advance(base::Time now = kStart) {
    turns.Advance(now);
    pacer.Advance(now);
  }
  std::string Asked() {
    std::string out;
    for (const auto& one : transport.asked)
      out += one.request.method + " " + one.request.path + "\n";
    return out;
  }
};

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

TEST_F(TurnsTest, APodThatTheJobSaysWasThereIsLookedForBeforeItCountsAsLost) {
  woken = nullptr;
  const Pod lost = *pods.Find({"team-a", "mnist-worker-1"});
  pods.Drop(lost.key, lost.uid, lost.version);
  woken = &turns;
  turns.Wake(kJob);
  Advance();
  ASSERT_EQ(Asked(), "GET /api/v1/namespaces/team-a/pods/mnist-worker-1\n");
  transport.Reply(404, R"({"kind":"Status","code":404,"reason":"NotFound"})");
  Advance();
  EXPECT_TRUE(Asked().starts_with("PATCH /apis/kubeflow.org/v1/namespaces/team-a/tfjobs/mnist"))
      << Asked();
}

TEST_F(TurnsTest, APodThatIsFoundTellsThatTheOthersAreToBeLookedAtToo) {
  woken = nullptr;
  const Json lost = Worker("1", R"("phase":"Running")");
  pods.Drop({"team-a", "mnist-worker-1"}, "p-1", 1);
  woken = &turns;
  turns.Wake(kJob);
  Advance();
  transport.Reply(200, base::CompactJson(lost));
  Advance();
  EXPECT_EQ(Asked(), "GET /api/v1/namespaces/team-a/pods/mnist-worker-0\n");
  // Unknown is not looked at.
  transport.Reply(500, "{}");
  Advance();
  EXPECT_EQ(Asked(), "");
  Advance(*turns.next());
  EXPECT_EQ(Asked(), "GET /api/v1/namespaces/team-a/pods/mnist-worker-1\n");
}

TEST_F(TurnsTest, NothingEndsOnAViewOfPodsOlderThanTheJob) {
  woken = nullptr;
  job.get_object()["metadata"].get_object()["resourceVersion"] = "20";
  jobs.Apply(job);  // as somebody else wrote it
  pods.Learn(Worker("0", R"("phase":"Succeeded",)" + Terminated(0), 21));
  woken = &turns;
  turns.Wake(kJob);
  Advance();
  EXPECT_EQ(Asked(),
            "GET /api/v1/namespaces/team-a/pods/mnist-worker-0\n"
            "GET /api/v1/namespaces/team-a/pods/mnist-worker-1\n");
}

const std::string kStatusWritten =
    "PATCH /apis/kubeflow.org/v1/namespaces/team-a/tfjobs/mnist/status\n";

// Found by the simulator, travel/152251113.
TEST_F(TurnsTest, AnOldViewOfPodsIsNoNewerForWhatWeSaidOnIt) {
  woken = nullptr;
  JsonObject& metadata = job.get_object()["metadata"].get_object();
  metadata["resourceVersion"] = "20";
  jobs.Apply(job);  // as somebody else wrote it
  pods.Learn(Worker("1", R"("phase":"Pending")", 21));
  woken = &turns;
  turns.Wake(kJob);
  Advance();
  ASSERT_EQ(Asked(), kStatusWritten);
  core::Observed observed;
  for (const Pod* pod : pods.Of(kJob)) observed.replicas.push_back(pod->replica);
  const api::JobStatus said =
      core::Reconcile(*jobs.Find(kJob)->value, observed, {.end_leftovers = false}, kStart).status;
  job.get_object()["status"] = api::EncodeStatus(said);
  metadata["resourceVersion"] = "22";
  transport.Reply(200, base::CompactJson(job));
  Advance();
  ASSERT_EQ(jobs.Find(kJob)->value->status, said);
  while (!transport.asked.empty()) {  // services
    Json made = kube::testing::J(transport.asked.front().request.body);
    made.at("metadata").get_object()["uid"] = "s";
    transport.Reply(201, base::CompactJson(made));
  }
  pods.Learn(Worker("0", R"("phase":"Succeeded",)" + Terminated(0), 23));
  Advance();
  EXPECT_EQ(Asked(),
            "GET /api/v1/namespaces/team-a/pods/mnist-worker-0\n"
            "GET /api/v1/namespaces/team-a/pods/mnist-worker-1\n");
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

TEST_F(TurnsTest, OfManyJobsTheFirstOnesGoOnWhileTheLastOnesWait) {
  const auto add = [&](const std::string& name_space, const std::string& name) {
    Json one = JobObject();
    JsonObject& metadata = one.get_object()["metadata"].get_object();
    metadata["namespace"] = name_space;
    metadata["name"] = metadata["uid"] = name;
    one.at("spec").at("tfReplicaSpecs").at("Worker").at("template").get_object()["of"] = name;
    jobs.Apply(one);
  };
  for (int i = 0; i < 1000; ++i) add("team-a", "job-" + std::to_string(i));
  do {
    Advance();
  } while (turns.next() == kStart);
  EXPECT_EQ(transport.asked.size(), pacer.window());
  EXPECT_EQ(pacer.waiting(), pacer.window());
  EXPECT_EQ(turns.waiting(), 1000 - 2 * pacer.window());
  // Another namespace is not held up.
  add("team-b", "mnist");
  Advance();
  EXPECT_EQ(turns.waiting(), 1000 - 2 * pacer.window());
}

}  // namespace
}  // namespace backend::cluster
