// Turns whose view is older than the job.
#include <gtest/gtest.h>

#include "backend/cluster/turns_testing.h"

namespace backend::cluster {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using kube::testing::kStart;
using testing::kJob;
using testing::kStatusWritten;
using testing::Terminated;
using namespace std::chrono_literals;

struct TurnsLookTest : testing::WithTurns {
  // All that the job has.
  static std::string Survey() {
    const auto one = [&](const char* resource) {
      return fmt::format(
          "GET /api/v1/namespaces/team-a/{}?labelSelector=training.kubeflow.org%2Fjob-name%3Dmnist"
          "%2Ctraining.kubeflow.org%2Foperator-name%3Dtfjob-controller&limit=200\n",
          resource);
    };
    return one("pods") + one("services");
  }
  static std::string List(JsonArray items, int version) {
    return base::CompactJson(
        JsonObject{{"metadata", JsonObject{{"resourceVersion", std::to_string(version)}}},
                   {"items", std::move(items)}});
  }
  Json ServiceOf(int32_t index) {
    Json object = MakeService(*ReadJob(job)->value, {api::Role::kWorker, index});
    object.at("metadata").get_object()["uid"] = "s-" + std::to_string(index);
    object.at("metadata").get_object()["resourceVersion"] = "9";
    return object;
  }
  // The gang was raised, so what it had before is no part of the status any more, and nothing of
  // it is known here.
  void RaiseUnseen() {
    woken = nullptr;
    for (const char* index : {"0", "1"}) {
      pods.Drop({"team-a", std::string("mnist-worker-") + index}, std::string("p-") + index, 1);
    }
    api::JobStatus status = ReadJob(job)->value->status;
    status.gang.attempt = status.attempt = 1;
    status.seen.clear();
    job.get_object()["status"] = api::EncodeStatus(status);
    Rewrite(20);
    woken = nullptr;
    services.Apply(ServiceOf(0));
    services.Apply(ServiceOf(1));
    woken = &turns;
  }
};

TEST_F(TurnsLookTest, APodThatTheJobSaysWasThereIsLookedForBeforeItCountsAsLost) {
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

TEST_F(TurnsLookTest, APodThatIsFoundTellsThatTheOthersAreToBeLookedAtToo) {
  woken = nullptr;
  const Json lost = Worker("1", R"("phase":"Running")");
  pods.Drop({"team-a", "mnist-worker-1"}, "p-1", 1);
  woken = &turns;
  turns.Wake(kJob);
  Advance();
  transport.Reply(200, base::CompactJson(lost));
  Advance();
  EXPECT_EQ(Asked(), Survey());
}

TEST_F(TurnsLookTest, NothingEndsOnAViewOfPodsOlderThanTheJob) {
  Rewrite(20);
  woken = nullptr;
  pods.Learn(Worker("0", R"("phase":"Succeeded",)" + Terminated(0), 21));
  woken = &turns;
  turns.Wake(kJob);
  Advance();
  EXPECT_EQ(Asked(), Survey());
}

// Found by the simulator, travel/152251113.
TEST_F(TurnsLookTest, AnOldViewOfPodsIsNoNewerForWhatWeSaidOnIt) {
  Rewrite(20);
  woken = nullptr;
  services.Reached(20);
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
  job.at("metadata").get_object()["resourceVersion"] = "22";
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
  EXPECT_EQ(Asked(), Survey());
}

// Found by the simulator, travel/3252930790: of a job that was scaled up, the names of the new
// replicas were free while those of the old generation ran, unknown to an operator that had just
// started on lists of the past.
TEST_F(TurnsLookTest, NoPodIsMadeOnAViewOfPodsOlderThanTheJob) {
  RaiseUnseen();
  turns.Wake(kJob);
  Advance();
  ASSERT_EQ(Asked(), Survey());
  transport.Reply(200, List({Worker("1", R"("phase":"Running")", 10)}, 21));
  transport.Reply(200, List({ServiceOf(0), ServiceOf(1)}, 21));
  Advance();
  // The old generation goes first.
  while (!Asked().contains("DELETE") && !transport.asked.empty()) {
    ASSERT_FALSE(Asked().contains("POST /api/v1/namespaces/team-a/pods")) << Asked();
    transport.Reply(200, base::CompactJson(job));
    Advance();
  }
  EXPECT_EQ(Asked(), "DELETE /api/v1/namespaces/team-a/pods/mnist-worker-1\n");
}

// Found by the simulator, travel/3252933476: a service that was there was made once more, and the
// request came after 43 s, when the job was over.
TEST_F(TurnsLookTest, NoServiceIsMadeOnAViewOfServicesOlderThanTheJob) {
  Rewrite(20);
  pods.Reached(20);
  turns.Wake(kJob);
  Advance();
  ASSERT_EQ(Asked(), Survey());
  transport.Reply(200, List({Worker("0", R"("phase":"Running")"), Worker("1", "")}, 21));
  transport.Reply(200, List({ServiceOf(0), ServiceOf(1)}, 21));
  Advance();
  EXPECT_FALSE(Asked().contains("POST")) << Asked();
}

TEST_F(TurnsLookTest, AServerThatIsBehindIsAskedAgainForSomeTimeAndThenTakenAtItsWord) {
  RaiseUnseen();
  turns.Wake(kJob);
  Advance();
  base::Time now = kStart;
  for (; now < kStart + 2min; now = *turns.next(), Advance(now)) {
    ASSERT_EQ(Asked(), Survey());
    transport.Reply(200, List({}, 19));
    transport.Reply(200, List({}, 19));
    Advance(now);
    ASSERT_EQ(Asked(), "");
  }
  ASSERT_LT(now, kStart + 4min);
  ASSERT_EQ(Asked(), Survey());
  transport.Reply(200, List({}, 19));
  transport.Reply(200, List({ServiceOf(0), ServiceOf(1)}, 19));
  Advance(now);
  EXPECT_EQ(Asked(), kStatusWritten);
}

TEST_F(TurnsLookTest, AJobThatNobodyHasTouchedIsBegunWithoutASurvey) {
  for (const char* index : {"0", "1"}) {
    pods.Drop({"team-a", std::string("mnist-worker-") + index}, std::string("p-") + index, 1);
  }
  job.get_object().erase("status");
  Rewrite(20);
  turns.Wake(kJob);
  Advance();
  EXPECT_TRUE(Asked().starts_with("POST /api/v1/namespaces/team-a/pods?dryRun=All\n")) << Asked();
}

}  // namespace
}  // namespace backend::cluster
