#include "backend/cluster/pod_group.h"

#include <gtest/gtest.h>

#include "backend/cluster/testing.h"

namespace backend::cluster {
namespace {

using namespace testing;
using base::JsonObject;

const Settings kVolcano{.gang_scheduler = "volcano"};
const Settings kPlugins{.gang_scheduler = "scheduler-plugins"};

api::Job JobWith(const std::string& scheduling) {
  api::Decoded decoded = api::DecodeJobObject(
      JobObject(R"("runPolicy":{"schedulingPolicy":{)" + scheduling + R"(}},)"));
  CHECK(decoded.errors.empty());
  return decoded.job;
}

api::Job Asking(const std::string& resources) {
  api::Job job = MakeJob();
  Json& containers = job.spec.replicas.at(Role::kWorker).pod_template.at("spec").at("containers");
  containers.at(0).get_object()["resources"] = Parse(resources);
  return job;
}

std::string SpecOf(const Json& group) { return base::CompactJson(group.at("spec")); }

PodGroup Stored(const std::string& spec, const std::string& phase = "") {
  return {.spec = Parse(spec), .phase = phase};
}

TEST(MakePodGroup, IsOfTheJobsNameAndItsOwn) {
  const Json group = MakePodGroup(MakeJob(), kVolcano);
  EXPECT_EQ(base::StringOr(group, "apiVersion"), "scheduling.volcano.sh/v1beta1");
  EXPECT_EQ(base::StringOr(group.at("metadata"), "name"), "mnist");
  EXPECT_EQ(OwnerOf(group.at("metadata")), "u-1");
  EXPECT_EQ(base::StringOr(MakePodGroup(MakeJob(), kPlugins), "apiVersion"),
            "scheduling.x-k8s.io/v1alpha1");
}

TEST(MakePodGroup, WaitsForEveryReplicaUnlessTheAuthorSaysOtherwise) {
  EXPECT_EQ(SpecOf(MakePodGroup(MakeJob(), kVolcano)), R"({"minMember":2,"queue":"default"})");
  EXPECT_EQ(SpecOf(MakePodGroup(JobWith(R"("minAvailable":1,"queue":"q","priorityClass":"p",)"
                                        R"("minResources":{"cpu":"3"})"),
                                kVolcano)),
            R"({"minMember":1,"minResources":{"cpu":"3"},"queue":"q","priorityClassName":"p"})");
  EXPECT_EQ(SpecOf(MakePodGroup(JobWith(R"("scheduleTimeoutSeconds":60)"), kPlugins)),
            R"({"minMember":2,"scheduleTimeoutSeconds":60})");
}

TEST(MakePodGroup, OfAnElasticJobWaitsForTheFewestWorkers) {
  api::Job job = Asking(R"({"requests":{"cpu":"250m"}})");
  job.extensions.elastic = {.min = 1, .max = 4};
  EXPECT_EQ(SpecOf(MakePodGroup(job, kPlugins)),
            R"({"minMember":1,"minResources":{"cpu":"250m"}})");
}

TEST(MakePodGroup, AddsUpRequestsAndWhereThereAreNoneLimits) {
  EXPECT_EQ(
      SpecOf(MakePodGroup(
          Asking(R"({"requests":{"cpu":"250m"},"limits":{"cpu":2,"memory":"1Gi"}})"), kPlugins)),
      R"({"minMember":2,"minResources":{"cpu":"500m"}})");
  EXPECT_EQ(SpecOf(MakePodGroup(Asking(R"({"limits":{"memory":"1Ki"}})"), kPlugins)),
            R"({"minMember":2,"minResources":{"memory":"2048"}})");
}

TEST(PodGroup, IsUpToDateWhateverOthersAddAndWhicheverQueueItIsIn) {
  const api::Job job = MakeJob();
  const PodGroup moved = Stored(R"({"minMember":2,"queue":"night","minTaskMember":{}})");
  EXPECT_TRUE(IsUpToDate(moved, job, kVolcano));
  EXPECT_EQ(base::StringOr(MakePodGroup(job, kVolcano, &moved).at("spec"), "queue"), "night");
  EXPECT_FALSE(IsUpToDate(Stored(R"({"minMember":3,"queue":"default"})"), job, kVolcano));
}

TEST(PodGroup, KeepsPodsBackUntilVolcanoAdmitsIt) {
  EXPECT_FALSE(PodsMayStart(Stored("{}", ""), kVolcano));
  EXPECT_FALSE(PodsMayStart(Stored("{}", "Pending"), kVolcano));
  EXPECT_TRUE(PodsMayStart(Stored("{}", "Inqueue"), kVolcano));
  EXPECT_TRUE(PodsMayStart(Stored("{}", ""), kPlugins));
}

TEST(PodGroup, AnotherSchedulerIsNoticed) {
  api::Job job = MakeJob();
  EXPECT_FALSE(NamesAnotherScheduler(job, kVolcano));
  JsonObject& spec = job.spec.replicas.at(Role::kWorker).pod_template.at("spec").as_object();
  spec["schedulerName"] = "volcano";
  EXPECT_FALSE(NamesAnotherScheduler(job, kVolcano));
  EXPECT_TRUE(NamesAnotherScheduler(job, kPlugins));
}

}  // namespace
}  // namespace backend::cluster
