#include "backend/cluster/pod.h"

#include <gtest/gtest.h>

#include "backend/cluster/stored.h"
#include "backend/cluster/testing.h"

namespace backend::cluster {
namespace {

using namespace testing;
using base::JsonObject;
using core::Phase;

constexpr const char* kDeleted =
    R"(,"deletionTimestamp":"2026-01-01T00:01:30Z","deletionGracePeriodSeconds":30)";
constexpr const char* kForced =
    R"(,"deletionTimestamp":"2026-01-01T00:01:30Z","deletionGracePeriodSeconds":0)";

Pod Read(const Json& object) {
  auto pod = ReadPod(object);
  CHECK(pod);
  return *pod;
}

TEST(ReadPod, KnowsWhoseItIs) {
  const Pod pod = Read(PodObject("", R"("phase":"Pending")"));
  EXPECT_EQ(pod.key, (Key{"team-a", "mnist-worker-0"}));
  EXPECT_EQ(pod.job, (Key{"team-a", "mnist"}));
  EXPECT_EQ(pod.owner, "u-1");
  EXPECT_EQ(pod.version, 9u);
  EXPECT_EQ(pod.replica.attempt, 2);
  EXPECT_EQ(pod.replica.phase, Phase::kPending);
  EXPECT_TRUE(pod.held);
}

TEST(ReadPod, IsNothingWithoutOurLabels) {
  EXPECT_FALSE(ReadPod(Parse(R"({"metadata":{"name":"x","uid":"y"}})")));
  EXPECT_FALSE(ReadPod(Parse("[1,2]")));
  EXPECT_FALSE(ReadPod(Parse(R"({"metadata":{"name":"x","uid":"y","labels":)"
                             R"({"training.kubeflow.org/job-name":"j",)"
                             R"("training.kubeflow.org/replica-type":"worker",)"
                             R"("training.kubeflow.org/replica-index":"-1"}}})")));
}

TEST(ReadPod, TellsHowItEnded) {
  const Pod done = Read(PodObject("", R"("phase":"Succeeded",)" + Terminated(0)));
  EXPECT_EQ(done.replica.phase, Phase::kSucceeded);
  EXPECT_EQ(done.replica.ending->code, 0);
  const Pod failed = Read(
      PodObject("", R"("phase":"Failed",)" + Terminated(1, R"(,"message":"a\nValueError: x\n")")));
  EXPECT_EQ(failed.replica.phase, Phase::kFailed);
  EXPECT_EQ(failed.replica.ending->code, 1);
  EXPECT_EQ(failed.replica.ending->last_lines.back(), "ValueError: x");
  EXPECT_TRUE(failed.replica.ending->disruption.empty());
}

TEST(ReadPod, OutOfMemoryNamesTheLimit) {
  const Pod pod =
      Read(PodObject("", R"("phase":"Failed",)" + Terminated(137, R"(,"reason":"OOMKilled")")));
  EXPECT_EQ(pod.replica.ending->memory_limit_by, "the kubelet");
  EXPECT_EQ(pod.replica.ending->memory_limit, 64 << 20);
}

TEST(ReadPod, IsDecidedByTheMainContainerWhateverASidecarDoes) {
  const Pod pod = Read(PodObject("", R"("phase":"Running",)" + Terminated(0)));
  EXPECT_EQ(pod.replica.phase, Phase::kSucceeded);
  EXPECT_FALSE(pod.finished);
}

TEST(ReadPod, DeletedBySomebodyIsADisruptionOnceItHasEnded) {
  const Pod leaving =
      Read(PodObject(kDeleted, R"("phase":"Running",)" + ContainerState(R"("running":{})")));
  EXPECT_EQ(leaving.replica.phase, Phase::kRunning);
  EXPECT_TRUE(leaving.replica.deleting);
  EXPECT_EQ(leaving.grace, 30);
  const Pod gone = Read(
      PodObject(kDeleted, R"("phase":"Failed",)" + Terminated(143, "", "2026-01-01T00:01:10Z")));
  EXPECT_EQ(gone.replica.ending->disruption, "its pod was deleted");
}

std::string Conditions(const std::string& ready, const std::string& containers_ready) {
  return fmt::format(R"("phase":"Running","conditions":[{{"type":"Ready","status":{}}},)"
                     R"({{"type":"ContainersReady","status":"{}"}}],)",
                     ready, containers_ready);
}

// As the node controller marks the pods of a node whose kubelet has stopped.
TEST(ReadPod, OnANodeThatDoesNotAnswerIsSilent) {
  const std::string running = ContainerState(R"("running":{})");
  const Pod pod = Read(PodObject("", Conditions("\"False\"", "True") + running));
  EXPECT_EQ(pod.replica.phase, Phase::kRunning);
  EXPECT_EQ(pod.replica.silent, "node n does not answer");
  EXPECT_EQ(pod.trouble, "NodeNotReady");
  EXPECT_EQ(Read(PodObject("", Conditions("\"True\"", "True") + running)).replica.silent, "");
  EXPECT_EQ(Read(PodObject("", Conditions("\"False\"", "False") + running)).replica.silent, "")
      << "a readiness probe fails";
  const std::string gate = R"("False","reason":"ReadinessGatesNotReady")";
  EXPECT_EQ(Read(PodObject("", Conditions(gate, "True") + running)).replica.silent, "");
  const Pod ended = Read(PodObject("", Conditions("\"False\"", "True") + Terminated(1)));
  EXPECT_EQ(ended.replica.silent, "");
  const Pod given_up = Read(PodObject(kForced, Conditions("\"False\"", "True") + running));
  EXPECT_EQ(given_up.replica.phase, Phase::kFailed);
  EXPECT_EQ(given_up.replica.silent, "node n does not answer");
  EXPECT_EQ(given_up.trouble, "");
}

// As training-operator makes one under this policy.
Pod Theirs(const std::string& policy, const std::string& status) {
  Json object = PodObject("", status);
  object.at("metadata").get_object().erase("finalizers");
  object.at("metadata").at("labels").get_object().erase("trainyard.dev/attempt");
  object.at("spec").get_object()["restartPolicy"] = policy;
  return Read(object);
}

std::string Restarted(int times, const std::string& state, const std::string& last = "{}",
                      const std::string& phase = "Running") {
  return fmt::format(R"("phase":"{}","containerStatuses":[{{"name":"tensorflow",)"
                     R"("restartCount":{},"state":{},"lastState":{}}}])",
                     phase, times, state, last);
}

TEST(ReadPod, OfAnotherOperatorIsOfTheFirstAttemptAndNotHeld) {
  const Pod pod = Theirs("OnFailure", R"("phase":"Running")");
  EXPECT_EQ(pod.replica.attempt, 0);
  EXPECT_EQ(pod.replica.phase, Phase::kRunning);
  EXPECT_FALSE(pod.held);
}

TEST(ReadPod, RunsOnWhileAKubeletRestartsItsContainer) {
  const Pod failed = Theirs("OnFailure", R"("phase":"Running",)" + Terminated(1));
  EXPECT_EQ(failed.replica.phase, Phase::kRunning);
  const Pod done = Theirs("Always", R"("phase":"Running",)" + Terminated(0));
  EXPECT_EQ(done.replica.phase, Phase::kRunning);
}

TEST(ReadPod, UnderOnFailureIsDoneByItsMainContainerWhateverASidecarDoes) {
  const Pod done = Theirs("OnFailure", R"("phase":"Running",)" + Terminated(0));
  EXPECT_EQ(done.replica.phase, Phase::kSucceeded);
}

TEST(ReadPod, CountsTheRestartsOfAKubeletAndTheOneThatItIsAboutToMake) {
  const char* ended = R"({"terminated":{"exitCode":1}})";
  const auto count = [](const std::string& status) {
    return Theirs("OnFailure", status).replica.restarts_in_place;
  };
  EXPECT_EQ(count(Restarted(0, R"({"waiting":{"reason":"ContainerCreating"}})")), 0);
  EXPECT_EQ(count(Restarted(0, R"({"running":{}})")), 0);
  EXPECT_EQ(count(Restarted(0, ended)), 1);
  EXPECT_EQ(count(Restarted(0, R"({"waiting":{"reason":"CrashLoopBackOff"}})", ended)), 1);
  EXPECT_EQ(count(Restarted(1, R"({"running":{}})", ended)), 1);
  EXPECT_EQ(count(Restarted(1, R"({"waiting":{"reason":"CrashLoopBackOff"}})", ended)), 2);
  EXPECT_EQ(Theirs("Never", Restarted(1, ended)).replica.restarts_in_place, 0);
  EXPECT_EQ(count(Restarted(1, ended, "{}", "Failed")), 1);
}

// A preemption handler saves and exits with 0: that is not the end of the training.
TEST(ReadPod, AnExitWithZeroAfterItWasAskedToGoIsADisruption) {
  const Pod pod = Read(
      PodObject(kDeleted, R"("phase":"Succeeded",)" + Terminated(0, "", "2026-01-01T00:01:10Z")));
  EXPECT_EQ(pod.replica.phase, Phase::kFailed);
  EXPECT_FALSE(pod.replica.ending->disruption.empty());
}

TEST(ReadPod, DoneBeforeItWasDeletedIsDone) {
  const Pod pod = Read(
      PodObject(kDeleted, R"("phase":"Succeeded",)" + Terminated(0, "", "2026-01-01T00:00:59Z")));
  EXPECT_EQ(pod.replica.phase, Phase::kSucceeded);
  EXPECT_TRUE(pod.replica.ending->disruption.empty());
}

TEST(ReadPod, FailedBeforeItWasDeletedIsAFailure) {
  const auto failed_at = [](const std::string& when) {
    return Read(PodObject(kDeleted, R"("phase":"Failed",)" + Terminated(137, "", when)))
        .replica.ending->disruption;
  };
  EXPECT_EQ(failed_at("2026-01-01T00:00:59Z"), "");
  EXPECT_NE(failed_at("2026-01-01T00:01:00Z"), "") << "within the second of the deletion";
  EXPECT_NE(failed_at("2026-01-01T00:01:01Z"), "");
}

TEST(ReadPod, DeletedBeforeANodeHadItHasEnded) {
  const Pod pod =
      Read(PodObject(R"(,"deletionTimestamp":"2026-01-01T00:01:00Z")", R"("phase":"Pending")", ""));
  EXPECT_EQ(pod.replica.phase, Phase::kFailed);
  EXPECT_FALSE(pod.replica.ending->disruption.empty());
  EXPECT_TRUE(pod.finished);
}

// Its node is lost and says nothing any more; somebody took that upon himself.
TEST(ReadPod, DeletedByForceHasEndedWhateverItsPhaseSays) {
  const auto deleted = [](const std::string& more) {
    return R"(,"deletionTimestamp":"2026-01-01T00:01:00Z","deletionGracePeriodSeconds":)" + more;
  };
  const std::string running = R"("phase":"Running",)" + ContainerState(R"("running":{})");
  EXPECT_FALSE(Read(PodObject(deleted("1"), running)).replica.ending);
  const Pod pod = Read(PodObject(deleted("0"), running));
  EXPECT_EQ(pod.replica.phase, Phase::kFailed);
  EXPECT_EQ(pod.replica.ending->disruption, "its pod was deleted");
  EXPECT_TRUE(pod.finished);
}

TEST(ReadPod, DoneBeforeItWasDeletedByForceIsDone) {
  const Pod pod = Read(
      PodObject(R"(,"deletionTimestamp":"2026-01-01T00:01:30Z","deletionGracePeriodSeconds":0)",
                R"("phase":"Running",)" + Terminated(0)));
  EXPECT_EQ(pod.replica.phase, Phase::kSucceeded);
}

TEST(ReadPod, IsClosingUntilItsPhaseTellsThatEveryContainerHasEnded) {
  EXPECT_TRUE(Read(PodObject("", R"("phase":"Pending",)" + Terminated(0))).closing);
  EXPECT_FALSE(Read(PodObject("", R"("phase":"Succeeded",)" + Terminated(0))).closing);
  EXPECT_FALSE(Read(PodObject(kDeleted, R"("phase":"Running",)" + Terminated(0))).closing);
  EXPECT_FALSE(Read(PodObject("", R"("phase":"Running")")).closing);
  Json with_sidecar = PodObject("", R"("phase":"Running",)" + Terminated(0));
  with_sidecar.at("spec").at("containers").as_array().push_back(Parse(R"({"name":"proxy"})"));
  EXPECT_FALSE(Read(with_sidecar).closing);
}

TEST(ReadPod, EvictionAndALostNodeAreDisruptions) {
  const Pod evicted = Read(PodObject(
      "", R"("phase":"Failed","reason":"Evicted","message":"low on memory","conditions":[)"
          R"({"type":"DisruptionTarget","status":"True","reason":"TerminationByKubelet",)"
          R"("message":"low on memory"}],)" +
              Terminated(137)));
  EXPECT_EQ(evicted.replica.ending->disruption, "TerminationByKubelet: low on memory");
  const Pod lost = Read(PodObject("", R"("phase":"Failed","reason":"NodeLost")"));
  EXPECT_EQ(lost.replica.ending->disruption, "NodeLost");
}

TEST(ReadPod, ItsOwnTimeLimitIsAFailure) {
  const Pod pod = Read(PodObject("", R"("phase":"Failed","reason":"DeadlineExceeded")"));
  EXPECT_TRUE(pod.replica.ending->disruption.empty());
  EXPECT_NE(pod.replica.ending->code, 0);
}

TEST(ReadPod, TellsWhyItDoesNotStart) {
  const Pod pull = Read(PodObject(
      "",
      R"("phase":"Pending",)" +
          ContainerState(R"("waiting":{"reason":"ImagePullBackOff","message":"no such image"})")));
  EXPECT_EQ(pull.trouble, "ImagePullBackOff");
  EXPECT_EQ(pull.trouble_message,
            "Error pod mnist-worker-0 container tensorflow waiting message: no such image");
  const Pod full = Read(
      PodObject("", R"("phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",)"
                    R"("reason":"Unschedulable","message":"0/3 nodes are available"}])"));
  EXPECT_EQ(full.trouble, "Unschedulable");
}

TEST(ReadJob, ReadsAListFormThatTheServerShowsAsV1) {
  const auto job = ReadJob(Parse(
      R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"a","namespace":"n",)"
      R"("uid":"u","resourceVersion":"3"},"spec":{"replicaSpecs":[{"tfReplicaType":"MASTER",)"
      R"("replicas":1,"template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}],)"
      R"("restartPolicy":"OnFailure"}}}]}})"));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->invalid, "");
  EXPECT_EQ(api::ReplicasOf(job->value->spec, Role::kMaster), 1);
}

// As the definition of TFJob stores a list: with an empty map beside it.
TEST(ReadJob, AnEmptyMapBesideAListIsNothing) {
  const auto job = ReadJob(Parse(
      R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"a","namespace":"n",)"
      R"("uid":"u","resourceVersion":"3"},"spec":{"tfReplicaSpecs":{},"replicaSpecs":[)"
      R"({"template":{"spec":{"containers":[{"name":"tensorflow","image":"i"}]}}}]}})"));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->invalid, "");
  EXPECT_EQ(api::ReplicasOf(job->value->spec, Role::kMaster), 1);
}

TEST(ReadJob, KeepsWhatIsNoJobAsideWithTheReason) {
  const auto job = ReadJob(Parse(
      R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"a","namespace":"n",)"
      R"("uid":"u"},"spec":{"tfReplicaSpecs":{"Worker":{"replicas":-1}}}})"));
  ASSERT_TRUE(job);
  EXPECT_NE(job->invalid.find("spec.tfReplicaSpecs.Worker"), std::string::npos);
  EXPECT_EQ(job->value->metadata.uid, "u");
}

TEST(WasTakenFrom, IsWhatHasOnlyItsOwnerOrOnlyItsLabels) {
  const api::Job job = testing::MakeJob();
  const auto edited = [](auto edit) {
    Json pod = PodObject("", "");
    edit(pod.get_object()["metadata"].get_object());
    return pod;
  };
  EXPECT_FALSE(WasTakenFrom(job, edited([](JsonObject&) {})));
  EXPECT_TRUE(WasTakenFrom(job, edited([](JsonObject& m) { m.erase("labels"); })));
  EXPECT_TRUE(WasTakenFrom(job, edited([](JsonObject& m) { m.erase("ownerReferences"); })));
  EXPECT_FALSE(WasTakenFrom(job, edited([](JsonObject& m) {
                              m.erase("labels");
                              m.erase("ownerReferences");
                            })));
  EXPECT_FALSE(WasTakenFrom(job, edited([](JsonObject& m) {
                              m["ownerReferences"].get_array()[0].get_object()["uid"] = "another";
                            })));
  EXPECT_FALSE(WasTakenFrom(job, edited([](JsonObject& m) {
                              m.erase("ownerReferences");
                              m["deletionTimestamp"] = "2026-01-01T00:00:09Z";
                            })));
}

}  // namespace
}  // namespace backend::cluster
