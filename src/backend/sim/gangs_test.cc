// Jobs that need more places together than there are.
#include <gtest/gtest.h>

#include "api/status.h"
#include "backend/sim/api_object.h"
#include "backend/sim/cluster_world.h"

namespace backend::sim {
namespace {

using namespace std::chrono_literals;

std::string Manifest(const std::string& name) {
  return R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":")" + name +
         R"(","namespace":"default"},"spec":{"tfReplicaSpecs":{"Worker":{"replicas":2,)"
         R"("restartPolicy":"Never","template":{"spec":{"containers":[)"
         R"({"name":"tensorflow","image":"i"}]}}}}}})";
}

struct GangsTest : ::testing::TestWithParam<uint64_t> {
  // Every worker of a job trains for a minute, once all of them run.
  void LetTrain(const std::string& job) {
    std::vector<std::string> pods = {job + "-worker-0", job + "-worker-1"};
    for (const std::string& pod : pods) {
      const Object object = world.server.store().Get(kPods, KeyOf(ClusterWorld::kSpace, pod));
      if (!object || PhaseOf(*object) != "Running" || IsDeleting(*object)) return;
    }
    if (!training.insert(job).second) return;
    world.agenda.In(1min, [this, pods] {
      for (const std::string& pod : pods) {
        EXPECT_TRUE(world.kubelet.End(ClusterWorld::kSpace, pod, {.code = 0})) << pod;
      }
    });
  }

  api::JobStatus StatusOf(const std::string& job) {
    const Object object = world.server.store().Get(kTFJobs, KeyOf(ClusterWorld::kSpace, job));
    const base::Json* status = base::Find(*object, "status");
    return status ? api::DecodeStatus(*status) : api::JobStatus();
  }

  ClusterWorld world{GetParam()};
  std::set<std::string> training;
};

TEST_P(GangsTest, NineJobsOfTwoFinishOnEightPlaces) {
  world.kubelet.places = 8;
  world.AddOperator();
  std::vector<std::string> jobs;
  for (int i = 0; i < 9; ++i) jobs.push_back("job-" + std::to_string(i));
  for (const std::string& job : jobs) world.Submit(Manifest(job));
  const base::Time begin = world.agenda.now();
  const auto done = [&] {
    return std::ranges::all_of(
        jobs, [&](const std::string& job) { return api::Has(StatusOf(job), "Succeeded"); });
  };
  while (!done()) {
    ASSERT_LT(world.agenda.now(), begin + 15min) << "a deadlock";
    ASSERT_TRUE(world.Step()) << "nothing is left to happen";
    ASSERT_EQ(world.finding, "");
    for (const std::string& job : jobs) LetTrain(job);
  }
  for (const std::string& job : jobs) {
    const api::JobStatus status = StatusOf(job);
    EXPECT_EQ(status.restarts, 0) << job;
    EXPECT_EQ(status.disruptions, 0) << job;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, GangsTest, ::testing::Range<uint64_t>(1, 21));

}  // namespace
}  // namespace backend::sim
