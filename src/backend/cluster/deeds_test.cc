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

struct Silent : Chronicle {
  void Tell(const api::Job&, const core::Event&) override {}
  void Published(const api::JobStatus&, const api::Job&) override {}
  void Deleted(const api::Job&) override {}
  void TurnOver(bool, base::Duration) override {}
};

struct DeedsTest : ::testing::Test {
  kube::testing::FakeTransport transport;
  Collection<StoredJob> jobs{ReadJob, [](const Key&) {}};
  Collection<Pod> pods{ReadPod, [](const Key&) {}};
  Collection<Service> services{ReadService, [](const Key&) {}};
  Collection<PodGroup> groups{ReadPodGroup, [](const Key&) {}};
  Pacer pacer{transport};
  Silent chronicle;
  const Settings settings;
  const Deeds::JobPtr job = std::make_shared<const api::Job>(testing::MakeJob());
  Deeds deeds{{jobs, pods, services, groups}, pacer, chronicle, settings};
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
  deeds.ReadJob(kJob, Done());
  pacer.Advance(kStart);
  transport.Reply(404, kNotFound);
  EXPECT_FALSE(jobs.Find(kJob));
  EXPECT_EQ(answers, 1);
  EXPECT_FALSE(error);
}

TEST_F(DeedsTest, AJobMadeWhileItsPredecessorWasNotFoundIsKept) {
  jobs.Apply(JobObject());
  deeds.ReadJob(kJob, Done());
  pacer.Advance(kStart);
  jobs.Apply(Successor());
  transport.Reply(404, kNotFound);
  ASSERT_TRUE(jobs.Find(kJob));
  EXPECT_EQ(jobs.Find(kJob)->uid, "u-2");
}

TEST_F(DeedsTest, AJobMadeWhileThereWasNoneIsKept) {
  deeds.ReadJob(kJob, Done());
  pacer.Advance(kStart);
  jobs.Apply(Successor());
  transport.Reply(404, kNotFound);
  EXPECT_TRUE(jobs.Find(kJob));
}

TEST_F(DeedsTest, ADeletionThatIsRefusedForAnotherReasonThanItsUidIsNotTakenForDone) {
  const base::Json pod = PodObject("", "");
  pods.Apply(pod);
  deeds.DeletePod(job, *pods.Find(kPod), 0, Done());
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
  deeds.DeletePod(job, *pods.Find(kPod), 0, Done());
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
  deeds.DeletePod(job, *pods.Find(kPod), 0, Done());
  pacer.Advance(kStart);
  transport.Reply(409, kConflict);
  pacer.Advance(kStart);
  transport.Reply(404, kNotFound);
  EXPECT_FALSE(pods.Find(kPod));
  EXPECT_FALSE(error);
}

}  // namespace
}  // namespace backend::cluster
