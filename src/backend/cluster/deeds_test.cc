#include "backend/cluster/deeds.h"

#include <gtest/gtest.h>

#include "backend/cluster/testing.h"
#include "kube/testing.h"

namespace backend::cluster {
namespace {

using kube::testing::kStart;
using testing::JobObject;
using testing::PodObject;

const Key kJob{"team-a", "mnist"};
const Key kPod{"team-a", "mnist-worker-0"};
constexpr const char* kNotFound = R"({"kind":"Status","code":404,"reason":"NotFound"})";
constexpr const char* kConflict = R"({"kind":"Status","code":409,"reason":"Conflict"})";

struct DeedsTest : testing::WithDeeds {
  const Deeds::JobPtr job = std::make_shared<const api::Job>(testing::MakeJob());
  const Deeds::CreationsPtr creations = std::make_shared<Creations>();
  int answers = 0;
  std::optional<base::Error> error;

  Deeds::Done Done() {
    return [this](std::optional<base::Error> with) {
      ++answers;
      error = std::move(with);
    };
  }
  // The job of the tests under another UID, made later.
  base::Json Successor() {
    base::Json next = JobObject();
    next.get_object()["metadata"].get_object()["uid"] = "u-2";
    next.get_object()["metadata"].get_object()["resourceVersion"] = "12";
    return next;
  }
};

TEST_F(DeedsTest, AJobThatIsNotFoundIsForgotten) {
  jobs.Apply(JobObject());
  deeds.LookUpJob(kJob, Done());
  pacer.Advance(kStart);
  transport.Reply(404, kNotFound);
  EXPECT_FALSE(jobs.Find(kJob));
  EXPECT_EQ(answers, 1);
  EXPECT_FALSE(error);
}

TEST_F(DeedsTest, AJobMadeWhileItsPredecessorWasNotFoundIsKept) {
  jobs.Apply(JobObject());
  deeds.LookUpJob(kJob, Done());
  pacer.Advance(kStart);
  jobs.Apply(Successor());
  transport.Reply(404, kNotFound);
  ASSERT_TRUE(jobs.Find(kJob));
  EXPECT_EQ(jobs.Find(kJob)->uid, "u-2");
}

TEST_F(DeedsTest, AJobMadeWhileThereWasNoneIsKept) {
  deeds.LookUpJob(kJob, Done());
  pacer.Advance(kStart);
  jobs.Apply(Successor());
  transport.Reply(404, kNotFound);
  EXPECT_TRUE(jobs.Find(kJob));
}

TEST_F(DeedsTest, APodMadeWhileThereWasNoneIsKept) {
  deeds.LookUpPod(job, {api::Role::kWorker, 0}, Done());
  pacer.Advance(kStart);
  pods.Apply(PodObject("", ""));
  transport.Reply(404, kNotFound);
  EXPECT_TRUE(pods.Find(kPod));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), base::ErrorKind::kNotFound);
}

TEST_F(DeedsTest, AServiceOfAJobBeforeThisOneIsNotTakenForIts) {
  api::Job before = testing::MakeJob();
  before.metadata.uid = "u-0";
  base::Json service = MakeService(before, {api::Role::kWorker, 0});
  service.get_object()["metadata"].get_object()["uid"] = "s-1";
  service.get_object()["metadata"].get_object()["resourceVersion"] = "6";
  deeds.CreateService(job, {api::Role::kWorker, 0}, creations, Done());
  pacer.Advance(kStart);
  transport.Reply(409, R"({"kind":"Status","code":409,"reason":"AlreadyExists"})");
  pacer.Advance(kStart);
  transport.Reply(200, base::CompactJson(service));
  EXPECT_EQ(answers, 1);
  EXPECT_TRUE(error) << "so that it is tried again, and no pod starts before";
  EXPECT_TRUE(chronicle.heard.empty());
  EXPECT_TRUE(creations->TakeEvents().empty());
}

// As tf-operator made them.
TEST_F(DeedsTest, AServiceOfTheJobWithOtherLabelsMakesWayForOneThatFindsItsPod) {
  base::Json service = MakeService(*job, {api::Role::kWorker, 0});
  service.at("metadata").get_object()["uid"] = "s-1";
  service.at("metadata").get_object()["labels"] = base::JsonObject{{"tf-replica-type", "worker"}};
  deeds.CreateService(job, {api::Role::kWorker, 0}, creations, Done());
  pacer.Advance(kStart);
  transport.Reply(409, R"({"kind":"Status","code":409,"reason":"AlreadyExists"})");
  pacer.Advance(kStart);
  transport.Reply(200, base::CompactJson(service));
  pacer.Advance(kStart);
  ASSERT_EQ(transport.asked.size(), 1u);
  EXPECT_EQ(transport.asked[0].request.method, "DELETE");
  EXPECT_NE(transport.asked[0].request.body.find("s-1"), std::string::npos);
  transport.Reply(200, base::CompactJson(service));
  EXPECT_EQ(answers, 1);
  EXPECT_TRUE(error) << "so that it is tried again, and no pod starts before";
}

// Gone, on its way out, or another's name: whatever it is, its change wakes the job.
TEST_F(DeedsTest, APodThatCannotBeHeldAnyMoreIsNoError) {
  for (const int status : {404, 409, 422}) {
    pods.Apply(PodObject("", ""));
    deeds.Hold(job, *pods.Find(kPod), Done());
    pacer.Advance(kStart);
    transport.Reply(status, R"({"kind":"Status","reason":"Whatever"})");
    EXPECT_FALSE(error);
  }
  EXPECT_EQ(answers, 3);
}

TEST_F(DeedsTest, ADeletionThatIsRefusedForAnotherReasonThanItsUidIsNotTakenForDone) {
  const base::Json pod = PodObject("", "");
  pods.Apply(pod);
  deeds.DeletePod(job, *pods.Find(kPod), 0, false, Done());
  pacer.Advance(kStart);
  transport.Reply(409, kConflict);
  pacer.Advance(kStart);
  ASSERT_EQ(transport.asked.size(), 1u);
  EXPECT_EQ(transport.asked[0].request.method, "GET");
  transport.Reply(200, base::CompactJson(pod));
  EXPECT_TRUE(pods.Find(kPod));
  EXPECT_EQ(answers, 1);
  EXPECT_TRUE(error) << "so that it is tried again";
}

TEST_F(DeedsTest, ADeletionOfAPodWhoseNameIsAnothersLearnsOfThatOne) {
  pods.Apply(PodObject("", ""));
  deeds.DeletePod(job, *pods.Find(kPod), 0, false, Done());
  pacer.Advance(kStart);
  transport.Reply(409, kConflict);
  pacer.Advance(kStart);
  base::Json other = PodObject("", "");
  other.get_object()["metadata"].get_object()["uid"] = "p-2";
  other.get_object()["metadata"].get_object()["resourceVersion"] = "12";
  transport.Reply(200, base::CompactJson(other));
  ASSERT_TRUE(pods.Find(kPod));
  EXPECT_EQ(pods.Find(kPod)->uid, "p-2");
  EXPECT_EQ(answers, 1);
  EXPECT_FALSE(error);
}

TEST_F(DeedsTest, ADeletionOfAPodThatWentMeanwhileForgetsIt) {
  pods.Apply(PodObject("", ""));
  deeds.DeletePod(job, *pods.Find(kPod), 0, false, Done());
  pacer.Advance(kStart);
  transport.Reply(409, kConflict);
  pacer.Advance(kStart);
  transport.Reply(404, kNotFound);
  EXPECT_FALSE(pods.Find(kPod));
  EXPECT_FALSE(error);
}

TEST_F(DeedsTest, APodThatEndedAMomentAgoIsNotDeletedAsOneThatRuns) {
  pods.Apply(PodObject("", R"("phase":"Running")"));
  deeds.DeletePod(job, *pods.Find(kPod), 0, true, Done());
  pacer.Advance(kStart);
  const base::Json sent = *base::ParseJson(transport.asked[0].request.body);
  EXPECT_EQ(base::StringOr(sent.at("preconditions"), "resourceVersion"), "9");
  transport.Reply(409, kConflict);
  pacer.Advance(kStart);
  base::Json ended = PodObject("", R"("phase":"Succeeded")");
  ended.get_object()["metadata"].get_object()["resourceVersion"] = "10";
  transport.Reply(200, base::CompactJson(ended));
  EXPECT_TRUE(pods.Find(kPod)->finished);
  EXPECT_FALSE(error);
}

TEST_F(DeedsTest, AReleaseThatIsRefusedForAnotherReasonThanItsUidIsNotTakenForDone) {
  const base::Json pod = PodObject("", "");
  pods.Apply(pod);
  deeds.Release(*pods.Find(kPod), Done());
  pacer.Advance(kStart);
  transport.Reply(409, kConflict);
  pacer.Advance(kStart);
  transport.Reply(200, base::CompactJson(pod));
  EXPECT_EQ(answers, 1);
  EXPECT_TRUE(error) << "so that it is tried again";
}

TEST_F(DeedsTest, APodThatSomebodyTookFromItsJobIsTakenBack) {
  base::Json pod = PodObject("", "");
  pod.get_object()["metadata"].get_object().erase("ownerReferences");
  deeds.LookUpPod(job, {api::Role::kWorker, 0}, Done());
  pacer.Advance(kStart);
  transport.Reply(200, base::CompactJson(pod));
  pacer.Advance(kStart);
  ASSERT_EQ(transport.asked.size(), 1u);
  const base::Json sent = *base::ParseJson(transport.asked[0].request.body);
  EXPECT_EQ(base::StringOr(sent.at("metadata"), "uid"), "p-1");
  EXPECT_EQ(OwnerOf(sent.at("metadata")), "u-1");
  base::Json back = PodObject("", "");
  back.get_object()["metadata"].get_object()["resourceVersion"] = "10";
  transport.Reply(200, base::CompactJson(back));
  EXPECT_EQ(pods.Find(kPod)->owner, "u-1");
  EXPECT_FALSE(error);
}

// With many jobs at once, the first ones start while services of the others are still created.
TEST_F(DeedsTest, APodIsCreatedBeforeServicesThatWaitLonger) {
  for (int i = 0; i < 100; ++i)
    deeds.CreateService(job, {api::Role::kWorker, i}, creations, Done());
  deeds.CreatePod(job, {api::Role::kWorker, 0}, 0, creations, Done());
  pacer.Advance(kStart);
  EXPECT_EQ(transport.asked.front().request.path, "/api/v1/namespaces/team-a/pods");
  EXPECT_EQ(transport.asked.at(1).request.path, "/api/v1/namespaces/team-a/services");
}

}  // namespace
}  // namespace backend::cluster
