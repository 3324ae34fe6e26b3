// Turns of an operator for elastic jobs: it hands out no data, and gives such a job to a master.
#include "backend/cluster/turns_testing.h"

namespace backend::cluster {
namespace {

using namespace testing;
using std::chrono::seconds;

struct GivenTurnsTest : WithTurns {
  Turns giving{{jobs, pods, services, groups}, pacer, chronicle, {.master_image = "trainyard:1"}};

  GivenTurnsTest() {
    job.at("metadata").get_object()["annotations"] = JsonObject{{"trainyard.dev/elastic", "1:4"}};
    Rewrite(10);
    woken = &giving;
  }

  static inline const std::string kNotFound = R"({"kind":"Status","code":404,"reason":"NotFound"})";
  static inline const std::string kTaken =
      R"({"kind":"Status","code":409,"reason":"AlreadyExists"})";
  static inline const std::string kBatch = "/apis/batch/v1/namespaces/team-a/jobs";

  void Turn(base::Time now = kStart) {
    giving.Wake(kJob);
    giving.Advance(now);
    pacer.Advance(now);
  }
  // The answer to the oldest request, which must be this one.
  void Answer(const std::string& asked, int status, const std::string& body) {
    pacer.Advance(kStart);
    ASSERT_EQ(Asked(), asked + "\n");
    transport.Reply(status, body);
    pacer.Advance(kStart);
  }
  static std::string MasterWith(const std::string& status, const std::string& owner = "u-1",
                                const std::string& more = "") {
    return R"({"kind":"Job","metadata":{"name":"mnist-master","uid":"m-1",)" + more +
           R"("ownerReferences":[{"controller":true,"uid":")" + owner + R"("}]},"status":{)" +
           status + "}}";
  }
  std::string Heard() {
    std::string out;
    for (const auto& event : chronicle.heard) out += event.reason + "\n";
    return out;
  }
};

TEST_F(GivenTurnsTest, TheMasterComesLastOfWhatItNeedsAndIsLookedAtNowAndThen) {
  Turn();
  Answer("GET " + kBatch + "/mnist-master", 404, kNotFound);
  Answer("POST /api/v1/namespaces/team-a/serviceaccounts", 201, "{}");
  // Made by a turn that was broken off.
  const std::string bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings";
  Answer("POST " + bindings, 409, kTaken);
  Answer("GET " + bindings + "/mnist-master", 200, MasterWith(""));
  Answer("POST /api/v1/namespaces/team-a/services", 201, "{}");
  ASSERT_EQ(Asked(), "POST " + kBatch + "\n");
  EXPECT_NE(transport.asked.front().request.body.find(R"("image":"trainyard:1")"),
            std::string::npos);
  transport.Reply(201, "{}");
  EXPECT_EQ(Heard(), "SuccessfulCreateMaster\n");
  // Its status changes all the time.
  Turn(kStart + seconds(5));
  EXPECT_EQ(Asked(), "");
  ASSERT_TRUE(giving.next());
  EXPECT_EQ(*giving.next(), kStart + seconds(10));
  Turn(*giving.next());
  Answer("GET " + kBatch + "/mnist-master", 200, MasterWith(R"("ready":1)"));
  EXPECT_EQ(*giving.next(), kStart + seconds(10 + 60));
}

TEST_F(GivenTurnsTest, AnOperatorOfOneNamespaceGivesTheRoleOfThatNamespace) {
  const std::string bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings";
  Turn();
  Answer("GET " + kBatch + "/mnist-master", 404, kNotFound);
  Answer("POST /api/v1/namespaces/team-a/serviceaccounts", 201, "{}");
  const std::string forbidden = R"({"kind":"Status","code":403,"reason":"Forbidden"})";
  Answer("POST " + bindings, 403, forbidden);
  ASSERT_EQ(Asked(), "POST " + bindings + "\n");
  EXPECT_NE(transport.asked.front().request.body.find(R"("kind":"Role","name":"trainyard-master")"),
            std::string::npos);
  transport.Reply(403, forbidden);
  EXPECT_EQ(Asked(), "");
  EXPECT_EQ(Heard(), "FailedCreateMaster\n");
}

TEST_F(GivenTurnsTest, WhatKeepsItsPodFromRunningIsToldOnceOfTheJob) {
  const std::string waits =
      R"({"items":[{"metadata":{"name":"mnist-master-x","uid":"p-9"},"status":{"containerStatuses":[)"
      R"({"name":"master","state":{"waiting":{"reason":"ErrImagePull","message":"no such image"}}}]}}]})";
  for (const base::Time now : {kStart, kStart + seconds(10)}) {
    Turn(now);
    Answer("GET " + kBatch + "/mnist-master", 200, MasterWith(R"("active":1)"));
    Answer("GET /api/v1/namespaces/team-a/pods?labelSelector=job-name%3Dmnist-master", 200, waits);
  }
  EXPECT_EQ(Heard(), "ErrImagePull\n");
}

TEST_F(GivenTurnsTest, AMasterForWhichNoPodIsMadeIsTold) {
  Turn();
  Answer("GET " + kBatch + "/mnist-master", 200, MasterWith(""));
  Answer("GET /api/v1/namespaces/team-a/pods?labelSelector=job-name%3Dmnist-master", 200,
         R"({"items":[]})");
  EXPECT_EQ(Heard(), "FailedCreateMaster\n");
}

TEST_F(GivenTurnsTest, OneOfALifeBeforeGoesAndAnotherFollows) {
  Turn();
  Answer("GET " + kBatch + "/mnist-master", 200,
         MasterWith(R"("conditions":[{"type":"Complete","status":"True"}])"));
  Answer("DELETE " + kBatch + "/mnist-master", 200, "{}");
  Turn(kStart + seconds(1));
  Answer("GET " + kBatch + "/mnist-master", 200,
         MasterWith("", "u-1", R"("deletionTimestamp":"2026-01-01T00:00:05Z",)"));
  Turn(kStart + seconds(2));
  Answer("GET " + kBatch + "/mnist-master", 404, kNotFound);
  EXPECT_EQ(Asked(), "POST /api/v1/namespaces/team-a/serviceaccounts\n");
}

TEST_F(GivenTurnsTest, OneOfAnotherJobIsWaitedForAndToldOfWhenItStays) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Heard(), "");
    Turn(kStart + seconds(60 * i));
    Answer("GET " + kBatch + "/mnist-master", 200, MasterWith(R"("ready":1)", "u-0"));
    EXPECT_TRUE(giving.next());
  }
  EXPECT_EQ(Heard(), "FailedCreateMaster\n");
}

TEST_F(GivenTurnsTest, WhatTheServerWillNeverTakeEndsTheJob) {
  Turn();
  Answer("GET " + kBatch + "/mnist-master", 404, kNotFound);
  Answer("POST /api/v1/namespaces/team-a/serviceaccounts", 422,
         R"({"kind":"Status","code":422,"reason":"Invalid","message":"must not contain .."})");
  Turn(kStart + seconds(1));
  ASSERT_EQ(Asked(), kStatusWritten);
  const std::string& said = transport.asked.front().request.body;
  EXPECT_NE(said.find("its master: "), std::string::npos) << said;
  EXPECT_NE(said.find("must not contain .."), std::string::npos) << said;
}

TEST_F(GivenTurnsTest, OnceItHasEndedItIsTheOperatorsAgainAndInAnotherLifeAMasters) {
  Turn();
  Answer("GET " + kBatch + "/mnist-master", 200, MasterWith(R"("ready":1)"));
  job.at("status").get_object()["conditions"] =
      base::JsonArray{JsonObject{{"type", "Failed"}, {"status", "True"}}};
  Rewrite(11);
  Turn(kStart + seconds(1));
  EXPECT_EQ(Asked().find("batch"), std::string::npos) << Asked();
  while (!transport.asked.empty()) {
    const bool of_job = transport.asked.front().request.path.find("tfjobs") != std::string::npos;
    transport.Reply(of_job ? 200 : 404, of_job ? base::CompactJson(job) : kNotFound);
    giving.Advance(kStart + seconds(1));
    pacer.Advance(kStart + seconds(1));
    EXPECT_EQ(Asked().find("batch"), std::string::npos) << Asked();
  }
  job.at("metadata").at("annotations").get_object()["trainyard.dev/life"] = "1";
  Rewrite(12);
  Turn(kStart + seconds(2));
  EXPECT_NE(Asked().find("GET " + kBatch + "/mnist-master"), std::string::npos) << Asked();
}

}  // namespace
}  // namespace backend::cluster
