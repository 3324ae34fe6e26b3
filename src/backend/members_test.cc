#include "backend/members.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/testing.h"

namespace backend {
namespace {

using namespace core::testing;
using core::Phase;
using ledger::HostMember;
using ledger::MemberState;

// Answers when it is told to.
class SlowMaster : public DataMaster {
 public:
  void Tell(std::vector<HostMember> members) override { told = std::move(members); }
  bool Knows(const std::string& member, MemberState state) const override {
    return std::ranges::any_of(
        known, [&](const HostMember& m) { return m.name == member && m.state == state; });
  }
  const ledger::DataReport& data() const override { return report; }
  const std::string& broken() const override { return words; }

  void Answer() { known = told; }
  std::optional<MemberState> StateOf(const std::string& name) const {
    const auto found = std::ranges::find(told, name, &HostMember::name);
    return found == told.end() ? std::nullopt : std::optional(found->state);
  }

  std::vector<HostMember> told, known;
  ledger::DataReport report;
  std::string words;
};

class MembersTest : public ::testing::Test {
 protected:
  core::Observed See(std::vector<core::ReplicaState> replicas) {
    core::Observed observed{.replicas = std::move(replicas)};
    members.See(job, observed);
    return observed;
  }

  api::Job job = [] {
    api::Job made = MakeJob({.ps = 1, .worker = 2});
    made.extensions.elastic = api::Elastic{1, 2};
    return made;
  }();
  SlowMaster master;
  Members members{master};
};

TEST_F(MembersTest, AReplicaStartsOnceTheMasterHasAnsweredAListWithIt) {
  See({});
  EXPECT_FALSE(members.MayStart({kWorker0, 0}));
  EXPECT_EQ(master.StateOf("worker-0@0"), MemberState::kLive);
  EXPECT_FALSE(members.MayStart({kWorker0, 0})) << "it was told, and has not answered";
  See({});
  EXPECT_EQ(master.StateOf("worker-0@0"), MemberState::kLive) << "it is still wanted";
  master.Answer();
  EXPECT_TRUE(members.MayStart({kWorker0, 0}));
  EXPECT_FALSE(members.MayStart({kWorker0, 1})) << "another incarnation";
}

TEST_F(MembersTest, AParameterServerIsNobodyToTheMaster) {
  EXPECT_TRUE(members.MayStart({{api::Role::kPs, 0}, 0}));
  See({Replica({api::Role::kPs, 0}, Phase::kRunning)});
  EXPECT_TRUE(master.told.empty());
}

TEST_F(MembersTest, AnExitIsUnheardUntilTheMasterHasAnswered) {
  const auto ended = Replica(kWorker0, Phase::kSucceeded);
  EXPECT_EQ(See({ended}).data->unheard.size(), 1u);
  EXPECT_EQ(master.StateOf("worker-0@0"), MemberState::kSucceeded);
  master.Answer();
  EXPECT_TRUE(See({ended}).data->unheard.empty());
}

TEST_F(MembersTest, WhoeverIsToLeaveHasUntilThenAndIsStoppedAfterwards) {
  const auto running = Replica(kWorker1, Phase::kRunning);
  See({running});
  const base::Time now{}, until = now + std::chrono::seconds(30);
  members.Leave({.id = kWorker1, .incarnation = running.incarnation, .finish = true}, until);
  EXPECT_EQ(master.StateOf("worker-1@0"), MemberState::kLeaving);
  EXPECT_TRUE(See({running}).replicas[0].leaving);
  EXPECT_EQ(members.next(), until);
  EXPECT_TRUE(members.TakeOverdue(until - std::chrono::seconds(1)).empty());
  const auto stops = members.TakeOverdue(until);
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0].incarnation, running.incarnation);
  EXPECT_FALSE(stops[0].finish);
  EXPECT_EQ(members.next(), std::nullopt);
}

TEST_F(MembersTest, WhoeverHasLeftInTimeIsNotStopped) {
  const auto running = Replica(kWorker1, Phase::kRunning);
  See({running});
  members.Leave({.id = kWorker1, .incarnation = running.incarnation, .finish = true}, {});
  See({Replica(kWorker1, Phase::kSucceeded)});
  EXPECT_TRUE(members.TakeOverdue(base::Time::max()).empty());
}

TEST_F(MembersTest, TellsHowFarTheDataIs) {
  master.report = {.registered = true,
                   .todo = 3,
                   .doing = 1,
                   .records_left = 400,
                   .records_total = 1000,
                   .misled = {"worker-1@0"},
                   .members = {{.name = "worker-0@0", .doing = 1, .done = 6, .rate = 100}}};
  const auto observed = See({Replica(kWorker0, Phase::kRunning)});
  EXPECT_EQ(observed.data->todo, 3);
  EXPECT_EQ(observed.data->records_left, 400);
  EXPECT_EQ(observed.data->misled, std::set<core::Member>({{kWorker1, 0}}));
  EXPECT_EQ(observed.progress.percent, 60);
  EXPECT_EQ(observed.progress.remaining, std::chrono::seconds(4));
  EXPECT_EQ(members.Shares().at(kWorker0).done, 6);
}

}  // namespace
}  // namespace backend
