#include "backend/local/gpus.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "io/testing/temp_dir.h"

namespace backend::local {
namespace {

using api::ReplicaId;
using api::Role;

constexpr ReplicaId kChief0{Role::kChief, 0}, kPs0{Role::kPs, 0}, kEvaluator0{Role::kEvaluator, 0};

ReplicaId Worker(int32_t index) { return {Role::kWorker, index}; }

api::Job MakeJob(std::map<Role, int32_t> counts, const char* gpus = nullptr) {
  api::Job job;
  for (const auto& [role, count] : counts) {
    base::JsonObject container{{"name", api::kContainerName}};
    if (gpus) {
      container["resources"] =
          base::JsonObject{{"limits", base::JsonObject{{"nvidia.com/gpu", gpus}}}};
    }
    job.spec.replicas[role] = {
        .replicas = count,
        .pod_template = base::JsonObject{
            {"spec", base::JsonObject{{"containers", base::JsonArray{std::move(container)}}}}}};
  }
  return job;
}

// "a", "b", … at addresses that no other run of these tests uses.
std::vector<Gpu> Gpus(int count) {
  std::vector<Gpu> out;
  for (int i = 0; i < count; ++i)
    out.push_back({fmt::format("test-{}-{}", getpid(), i), std::string(1, "abcdefgh"[i])});
  return out;
}

using Visible = std::map<ReplicaId, std::string>;

TEST(GpusIn, AreThoseOfTheMachineUnlessSomebodyChose) {
  const io::testing::TempDir proc;
  proc.Write("0000:01:00.0/information", "Model: \t A100\nGPU UUID: \t GPU-11aa-22\nBus: PCIe\n");
  proc.Write("0000:02:00.0/information", "GPU UUID: \t GPU-?-?\n");
  const Gpu first{"0000:01:00.0", "GPU-11aa-22"}, second{"0000:02:00.0", "1"};
  EXPECT_EQ(GpusIn(std::nullopt, proc.path()), (std::vector{first, second}));
  const auto in = [&](const char* value) { return GpusIn(value, proc.path()); };
  EXPECT_EQ(in("1,0"), (std::vector{second, Gpu{"0000:01:00.0", "0"}}));
  EXPECT_EQ(in("GPU-11aa"), (std::vector{Gpu{"0000:01:00.0", "GPU-11aa"}}));
  EXPECT_EQ(in("MIG-5"), (std::vector{Gpu{"MIG-5", "MIG-5"}}));
  EXPECT_EQ(in("1, 1"), (std::vector{second}));
  for (const char* none : {"", "-1", "NoDevFiles", "2", "-1,0", "2,0"})
    EXPECT_EQ(in(none), std::vector<Gpu>()) << none;
  EXPECT_EQ(GpusIn(std::nullopt, proc.path() + "/none"), std::vector<Gpu>());
}

TEST(GpuLeases, GoToThoseThatTrain) {
  const api::Job job =
      MakeJob({{Role::kChief, 1}, {Role::kPs, 1}, {Role::kEvaluator, 1}, {Role::kWorker, 2}});
  GpuLeases leases;
  EXPECT_EQ(leases.ShareOut(job, Gpus(4))->visible,
            (Visible{{kChief0, "a"},
                     {kEvaluator0, "-1"},
                     {kPs0, "-1"},
                     {Worker(0), "b"},
                     {Worker(1), "c"}}));
}

TEST(GpuLeases, AreDividedEquallyAndOneReplicaGetsAll) {
  EXPECT_EQ(GpuLeases().ShareOut(MakeJob({{Role::kWorker, 1}}), Gpus(3))->visible,
            (Visible{{Worker(0), "a,b,c"}}));
  EXPECT_EQ(GpuLeases().ShareOut(MakeJob({{Role::kWorker, 2}}), Gpus(5))->visible,
            (Visible{{Worker(0), "a,b"}, {Worker(1), "c,d"}}));
}

TEST(GpuLeases, OfTwoJobsNeverOverlap) {
  auto one = std::make_optional<GpuLeases>();
  GpuLeases other;
  EXPECT_EQ(one->ShareOut(MakeJob({{Role::kWorker, 2}}, "1"), Gpus(3))->visible,
            (Visible{{Worker(0), "a"}, {Worker(1), "b"}}));
  const api::Job job = MakeJob({{Role::kWorker, 1}});
  EXPECT_EQ(other.ShareOut(job, Gpus(3))->visible, (Visible{{Worker(0), "c"}}));
  one.reset();
  EXPECT_EQ(other.ShareOut(job, Gpus(3))->visible, (Visible{{Worker(0), "a,b,c"}}));
}

TEST(GpuLeases, AreOfNoUseToAGangThatIsLargerThanTheirNumber) {
  GpuLeases leases;
  const auto shares = leases.ShareOut(MakeJob({{Role::kWorker, 3}}), Gpus(2));
  EXPECT_EQ(shares->visible, (Visible{{Worker(0), "-1"}, {Worker(1), "-1"}, {Worker(2), "-1"}}));
  EXPECT_EQ(shares->notice,
            "3 replicas train and 2 GPUs are free: all of them train on the CPU; "
            "-w 2 uses the GPUs");
  GpuLeases other;  // may have them
  EXPECT_EQ(other.ShareOut(MakeJob({{Role::kWorker, 2}}), Gpus(2))->notice, "");
  EXPECT_EQ(leases.ShareOut(MakeJob({{Role::kWorker, 1}}), Gpus(2))->notice,
            "no GPU is free: the job trains on the CPU");
}

TEST(GpuLeases, OfReplicasThatAreRestartedAloneGoAsFarAsTheyGo) {
  api::Job job = MakeJob({{Role::kWorker, 1}});
  job.extensions.elastic = api::Elastic{1, 3};
  GpuLeases leases;
  EXPECT_EQ(leases.ShareOut(job, Gpus(2))->visible, (Visible{{Worker(0), "a"}}));
  job.spec.replicas[Role::kWorker].replicas = 3;
  const auto shares = leases.ShareOut(job, Gpus(2));
  EXPECT_EQ(shares->visible, (Visible{{Worker(0), "a"}, {Worker(1), "b"}, {Worker(2), "-1"}}));
  EXPECT_EQ(shares->notice, "2 more replicas train and 1 GPU is free: worker/2 on the CPU");
}

TEST(GpuLeases, ThatTheJobAsksForAreThereOrTheJobIsRefused) {
  GpuLeases leases;
  EXPECT_EQ(leases.ShareOut(MakeJob({{Role::kWorker, 2}}, "2"), Gpus(4))->visible,
            (Visible{{Worker(0), "a,b"}, {Worker(1), "c,d"}}));
  const auto refused = leases.ShareOut(MakeJob({{Role::kWorker, 3}}, "2"), Gpus(4));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().text().contains("asks for 6 GPUs and 4 GPUs are free"));
  // The job keeps the GPUs that it had.
  EXPECT_EQ(GpuLeases().ShareOut(MakeJob({{Role::kWorker, 1}}), Gpus(4))->notice,
            "no GPU is free: the job trains on the CPU");
  const auto none = GpuLeases().ShareOut(MakeJob({{Role::kWorker, 1}}, "1"), {});
  EXPECT_EQ(none->visible, Visible());
  EXPECT_EQ(none->notice, "the job asks for GPUs and there are none: it trains on the CPU");
}

}  // namespace
}  // namespace backend::local
