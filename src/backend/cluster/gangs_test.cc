#include "backend/cluster/gangs.h"

#include <gtest/gtest.h>

#include "backend/cluster/testing.h"
#include "core/restart_policy.h"

namespace backend::cluster {
namespace {

using namespace std::chrono_literals;
using kube::testing::kStart;
using Keys = std::vector<Key>;

Gang G(const std::string& name, size_t placed, size_t missing, int age = 0) {
  return {.job = {"ns", name},
          .created = kStart - std::chrono::seconds(age),
          .placed = placed,
          .missing = missing,
          .lacks = {"cpu"},
          .requests = {"pods", "cpu"}};
}

Keys Named(const std::vector<std::string>& names) {
  Keys out;
  for (const std::string& name : names) out.push_back({"ns", name});
  return out;
}

TEST(GangsToBackOff, TheYoungestDoUntilThePlacesSufficeForTheOthers) {
  const Gang gpu = [] {
    Gang out = G("gpu", 1, 1, 9);
    out.lacks = {"nvidia.com/gpu"};
    return out;
  }();
  const auto in_pool = [](Gang gang, const std::string& pool) {
    gang.node_selector = {{"pool", pool}};
    return gang;
  };
  const auto important = [](Gang gang) {
    gang.priority = 100;
    return gang;
  };
  const struct {
    const char* what;
    std::vector<Gang> gangs;
    std::vector<std::string> back_off;
  } kCases[] = {
      {"nobody waits", {}, {}},
      {"one alone may wait for what others use", {G("a", 1, 1)}, {}},
      {"two halves", {G("a", 1, 1), G("b", 1, 1)}, {"b"}},
      {"the older one stays, whatever its name", {G("a", 1, 1), G("b", 1, 1, 60)}, {"a"}},
      {"none holds anything", {G("a", 0, 2), G("b", 0, 2)}, {}},
      {"only one holds anything", {G("a", 0, 2), G("b", 1, 1)}, {}},
      {"what holds nothing goes with the others, so that it does not take their places",
       {G("a", 1, 1), G("b", 1, 1), G("c", 0, 2)},
       {"b", "c"}},
      {"half of them suffice",
       {G("a", 1, 1), G("b", 1, 1), G("c", 1, 1), G("d", 1, 1)},
       {"c", "d"}},
      {"a large one needs all", {G("a", 1, 3), G("b", 1, 1), G("c", 2, 1)}, {"b", "c"}},
      {"the older one lacks what the younger one does not use", {gpu, G("b", 1, 1)}, {}},
      {"on other nodes", {in_pool(G("a", 1, 1), "x"), in_pool(G("b", 1, 1), "y")}, {}},
      {"on the same nodes", {in_pool(G("a", 1, 1), "x"), in_pool(G("b", 1, 1), "x")}, {"b"}},
      {"the more important one stays", {G("a", 1, 1, 60), important(G("b", 1, 1))}, {"a"}},
  };
  for (const auto& one : kCases) {
    EXPECT_EQ(GangsToBackOff(one.gangs), Named(one.back_off)) << one.what;
  }
}

struct GangOfTest : ::testing::Test {
  GangOfTest() {
    job.status.conditions.push_back({.type = "Created", .status = true, .last_transition = kStart});
  }
  static Pod Worker(int32_t index, const std::string& node, const std::string& lacks = "") {
    Pod pod{.owner = "u-1", .node = node};
    pod.replica.id = {api::Role::kWorker, index};
    if (!lacks.empty()) {
      pod.trouble = "Unschedulable";
      pod.trouble_message = lacks;
    }
    return pod;
  }
  api::Job job = testing::MakeJob();  // two workers
};

TEST_F(GangOfTest, CountsPlacesAndReadsWhatTheSchedulerLacks) {
  const auto gang = GangOf({"team-a", "mnist"}, job,
                           {Worker(0, "n"), Worker(1, "",
                                                   "0/3 nodes are available: 1 Insufficient cpu, 1 "
                                                   "Insufficient example.com/x-y, 1 Too many pods. "
                                                   "preemption: 0/3 nodes are available.")});
  ASSERT_TRUE(gang);
  EXPECT_EQ(gang->placed, 1u);
  EXPECT_EQ(gang->missing, 1u);
  EXPECT_EQ(gang->lacks, (std::set<std::string>{"cpu", "example.com/x-y", "pods"}));
}

// A LimitRange adds requests to the pods that the job does not name.
TEST_F(GangOfTest, RequestsWhatItsPodsLackThoughTheJobDoesNotNameIt) {
  const std::string lacks = "0/1 nodes are available: 1 Insufficient cpu.";
  Gang older = *GangOf({"team-a", "older"}, job, {Worker(0, "n"), Worker(1, "", lacks)});
  Gang younger = *GangOf({"team-a", "younger"}, job, {Worker(0, "n"), Worker(1, "", lacks)});
  younger.created += 1s;
  EXPECT_EQ(GangsToBackOff({older, younger}), std::vector<Key>{younger.job});
}

TEST_F(GangOfTest, IsNoneWhenAllHavePlaces) {
  EXPECT_FALSE(GangOf({"team-a", "mnist"}, job, {Worker(0, "n"), Worker(1, "n")}));
}

TEST_F(GangOfTest, IsNoneWhenAReplicaThatRanIsReplaced) {
  job.status.units[{api::Role::kWorker, 1}].attempt = 1;
  EXPECT_FALSE(GangOf({"team-a", "mnist"}, job, {Worker(0, "n")}));
}

// Its place went to another job when it failed, and the others wait for it.
TEST_F(GangOfTest, MissesACoordinatorThatIsReplaced) {
  job.spec.replicas[api::Role::kChief] = job.spec.replicas[api::Role::kPs] =
      job.spec.replicas[api::Role::kWorker];
  job.spec.replicas[api::Role::kChief].replicas = job.spec.replicas[api::Role::kPs].replicas = 1;
  job.status.units[{api::Role::kChief, 0}].attempt = 1;
  Pod chief = Worker(0, "", "0/1 nodes are available: 1 Insufficient cpu."), ps = Worker(0, "n");
  chief.replica.id.role = api::Role::kChief;
  chief.replica.attempt = 1;
  ps.replica.id.role = api::Role::kPs;
  const auto gang =
      GangOf({"team-a", "mnist"}, job, {chief, ps, Worker(0, "n"), Worker(1, "n")});
  ASSERT_TRUE(gang);
  EXPECT_EQ(gang->placed, 3u);
  EXPECT_EQ(gang->missing, 1u);
  EXPECT_EQ(gang->lacks, std::set<std::string>{"cpu"});
  chief.node = "n";
  EXPECT_FALSE(GangOf({"team-a", "mnist"}, job, {chief, ps, Worker(0, "", "Insufficient cpu")}))
      << "it goes on without a worker";
}

TEST_F(GangOfTest, IsNoneWhenTheJobNeedsNotAllOfItsReplicas) {
  job.extensions.elastic = {.min = 1, .max = 2};
  EXPECT_FALSE(GangOf({"team-a", "mnist"}, job, {Worker(0, "n")}));
}

TEST_F(GangOfTest, IsNoneWithAnotherScheduler) {
  job.spec.replicas[api::Role::kWorker].pod_template.at("spec").get_object()["schedulerName"] =
      "volcano";
  EXPECT_FALSE(GangOf({"team-a", "mnist"}, job, {Worker(0, "n")}));
}

struct GangAdmissionTest : ::testing::Test {
  void Observe(const Gang& gang, bool away = false) { gangs.Observe(gang.job, gang, away, now); }
  Keys AdvanceTo(base::Time time) { return gangs.Advance(now = time); }
  base::Time now = kStart;
  GangAdmission gangs;
};

TEST_F(GangAdmissionTest, TheYoungerBacksOffWhenNeitherHasGotOnForAWhile) {
  Observe(G("a", 1, 1));
  Observe(G("b", 1, 1));
  EXPECT_EQ(gangs.next(), kStart + 10s);
  EXPECT_EQ(AdvanceTo(kStart + 9s), Keys());
  Observe(G("a", 1, 1));
  EXPECT_EQ(AdvanceTo(kStart + 10s), Named({"b"}));
  EXPECT_EQ(gangs.TakeStart({"ns", "b"}), kStart + 20s);
  EXPECT_EQ(gangs.TakeStart({"ns", "b"}), std::nullopt);
  EXPECT_EQ(gangs.TakeStart({"ns", "a"}), std::nullopt);
}

// The places of two suffice for the other two.
TEST_F(GangAdmissionTest, GangsThatWaitNearlyAsLongAreConsideredTogether) {
  for (const char* name : {"a", "b", "c", "d"}) {
    Observe(G(name, 1, 1));
    now += 300ms;
  }
  EXPECT_EQ(AdvanceTo(kStart + 10s), Named({"c", "d"}));
  EXPECT_EQ(AdvanceTo(kStart + 11s), Keys());
}

TEST_F(GangAdmissionTest, ThePauseGrowsUntilTheJobHasAllItsPlaces) {
  const auto pause = [&] {
    Observe(G("a", 1, 1));
    Observe(G("b", 1, 1));
    EXPECT_EQ(AdvanceTo(now + 10s), Named({"b"}));
    return *gangs.TakeStart({"ns", "b"}) - now;
  };
  EXPECT_EQ(pause(), 10s);
  EXPECT_EQ(pause(), 20s);
  EXPECT_EQ(pause(), 40s);
  for (int i = 0; i < 10; ++i) pause();
  EXPECT_EQ(pause(), core::kLongestPause);
  gangs.Observe({"ns", "b"}, std::nullopt, false, now);
  EXPECT_EQ(pause(), 10s);
}

TEST_F(GangAdmissionTest, TheOldestReturnsAsSoonAsNobodyWaits) {
  Observe(G("a", 1, 1));
  Observe(G("c", 1, 1));
  Observe(G("b", 1, 1, 1));
  AdvanceTo(kStart + 10s);
  Observe(G("a", 0, 2), true);
  Observe(G("c", 0, 2), true);
  EXPECT_EQ(AdvanceTo(kStart + 11s), Keys());
  gangs.Observe({"ns", "b"}, std::nullopt, false, now);
  EXPECT_EQ(AdvanceTo(kStart + 12s), Named({"a"}));
  EXPECT_EQ(gangs.TakeStart({"ns", "a"}), now);
  Observe(G("a", 0, 2));
  EXPECT_EQ(AdvanceTo(kStart + 13s), Keys()) << "one after the other";
}

}  // namespace
}  // namespace backend::cluster
