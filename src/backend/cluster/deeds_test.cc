#include "backend/cluster/deeds.h"

#include <gtest/gtest.h>

#include "backend/cluster/testing.h"
#include "kube/testing.h"

namespace backend::cluster {
namespace {

using kube::testing::kStart;
using testing::JobObject;

const Key kJob{"team-a", "mnist"};
constexpr const char* kNotFound = R"({"kind":"Status","code":404,"reason":"NotFound"})";

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
    base::Json job = JobObject();
    job.get_object()["metadata"].get_object()["uid"] = "u-2";
    job.get_object()["metadata"].get_object()["resourceVersion"] = "12";
    return job;
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

}  // namespace
}  // namespace backend::cluster
