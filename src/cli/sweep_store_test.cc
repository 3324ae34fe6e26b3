#include "cli/sweep_store.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

namespace cli {
namespace {

using sweep::State;
using sweep::Trial;

class Store : public testing::Test {
 protected:
  void SetUp() override { setenv("TRAINYARD_HOME", home_.c_str(), 1); }
  void TearDown() override {
    unsetenv("TRAINYARD_HOME");
    std::filesystem::remove_all(home_);
  }

  static SweepPlan Plan() {
    SweepPlan plan{.name = "s", .name_space = "default", .job_space = "jobs", .metric = "loss"};
    plan.settings.space = {*sweep::ParseParameter("lr=log:1e-4..1e-1"),
                           *sweep::ParseParameter("o=a b,\"c\"")};
    plan.settings.seed = UINT64_MAX;
    plan.settings.maximize = true;
    plan.directory = "/";
    plan.run_flags = {"--workers=2"};
    plan.arguments = {"--x", ""};
    return plan;
  }

  const std::string home_ = testing::TempDir() + "sweep-store-" + std::to_string(getpid()) + "-" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(Store, KeepsThePlan) {
  ASSERT_TRUE(SweepStore::Create(Plan(), ""));
  EXPECT_EQ(SweepStore::Open("default", "s")->plan(), Plan());
  EXPECT_EQ(SweepStore::Open("default", "")->plan().name, "s");
  EXPECT_EQ(SweepStore::Open("default", "sx").error().text(), "no sweep named sx: did you mean s?");
  EXPECT_EQ(SweepStore::Create(Plan(), "").error().kind(), base::ErrorKind::kTaken);
}

TEST_F(Store, CutAtAnyByteLosesNothingThatWasWhole) {
  auto store = SweepStore::Create(Plan(), "");
  ASSERT_TRUE(store);
  sweep::Study study(Plan().settings);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->NoteAsked(study.Ask()));
  study.Report(0, 1.0 / 3);
  study.End(0, {});
  study.End(1, {.failed = true, .reason = "a \"cause\",\nwith lines"});
  for (int number : study.TakeDecided())
    ASSERT_TRUE(store->NoteDecided(study.trials()[static_cast<size_t>(number)]));
  EXPECT_EQ(store->Load()->trials(), study.trials());

  const std::string log = *io::ReadFile(store->File("trials.log"));
  for (size_t size = 0; size <= log.size(); ++size) {
    ASSERT_TRUE(io::WriteFile(store->File("trials.log"), log.substr(0, size)));
    auto cut = store->Load();
    ASSERT_TRUE(cut) << size;
    EXPECT_LE(cut->trials().size(), 3u);
    for (size_t i = 0; i < cut->trials().size(); ++i) {
      EXPECT_EQ(cut->trials()[i].point, study.trials()[i].point);
    }
    EXPECT_EQ(*io::ReadFile(store->File("trials.log")),
              log.substr(0, size == 0 ? 0 : log.rfind('\n', size - 1) + 1));
  }
}

TEST_F(Store, ADamagedLineIsToldNotSkipped) {
  auto store = SweepStore::Create(Plan(), "");
  sweep::Study study(Plan().settings);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->NoteAsked(study.Ask()));
  std::string log = *io::ReadFile(store->File("trials.log"));
  log[30] ^= 1;
  ASSERT_TRUE(io::WriteFile(store->File("trials.log"), log));
  EXPECT_EQ(store->Load().error().text(), "trials.log: line 1 is damaged");
}

TEST_F(Store, ReportsAndEndingsThatAreNotDecidedComeBack) {
  auto store = SweepStore::Create(Plan(), "");
  sweep::Study study(Plan().settings);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(store->NoteAsked(study.Ask()));
  // The second is judged once the first is over.
  ASSERT_TRUE(store->NoteReport(1, 5));
  ASSERT_TRUE(store->NoteEnding(1, {.value = 4}));
  auto loaded = store->Load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->trials()[1].state, State::kRunning);
  loaded->End(0, {.value = 1});
  EXPECT_EQ(loaded->trials()[1].state, State::kComplete);
  EXPECT_EQ(loaded->trials()[1].value, 4);
}

TEST_F(Store, TheTableQuotesWhatNeedsIt) {
  const sweep::Settings settings = Plan().settings;
  const std::vector<Trial> trials = {
      {.number = 0, .point = {0.01, 1}, .state = State::kFailed, .reason = "x, \"y\""},
      {.number = 1, .point = {0.1, 0}, .state = State::kComplete, .value = 0.1, .reports = 2},
      {.number = 2, .point = {0.1, 0}}};
  EXPECT_EQ(Table(settings, trials),
            "trial,state,value,reports,lr,o,reason\n"
            "0,failed,,0,0.01,\"\"\"c\"\"\",\"x, \"\"y\"\"\"\n"
            "1,complete,0.1,2,0.1,a b,\n");
}

TEST_F(Store, InactiveParametersHaveNoValueAnywhere) {
  SweepPlan plan = Plan();
  plan.settings.space = {*sweep::ParseParameter("o=sgd,adam"),
                         *sweep::ParseParameter("m=0.0..0.9 when o=sgd"),
                         *sweep::ParseParameter("b=1..9 when o=adam")};
  plan.settings.pruning = sweep::Pruning::kNone;
  auto store = SweepStore::Create(plan, "");
  ASSERT_TRUE(store);
  EXPECT_EQ(SweepStore::Open("default", "s")->plan(), plan);
  sweep::Study study(plan.settings);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(store->NoteAsked(study.Ask()));
  EXPECT_EQ(store->Load()->trials(), study.trials());

  const double off = sweep::kInactive;
  const std::vector<Trial> trials = {
      {.number = 0, .point = {0, 0.5, off}, .state = State::kComplete, .value = 1},
      {.number = 1, .point = {1, off, 3}, .state = State::kComplete, .value = 2}};
  EXPECT_EQ(Table(plan.settings, trials),
            "trial,state,value,reports,o,m,b,reason\n"
            "0,complete,1,0,sgd,0.5,,\n"
            "1,complete,2,0,adam,,3,\n");
  EXPECT_EQ(io::BaseName(store->TrialDir(trials[1])), "001-o=adam,b=3");
}

TEST_F(Store, ATrialWithoutAValueThatItMustHaveIsAnError) {
  SweepPlan plan = Plan();
  plan.settings.space = {*sweep::ParseParameter("o=sgd,adam"),
                         *sweep::ParseParameter("m=0.0..0.9 when o=sgd")};
  auto store = SweepStore::Create(plan, "");
  ASSERT_TRUE(store->NoteAsked({.number = 0, .point = {0, sweep::kInactive}}));
  EXPECT_EQ(store->Load().error().text(), "trials.log: trial 0: m has no value");
  ASSERT_TRUE(io::WriteFile(store->File("trials.log"), ""));
  ASSERT_TRUE(store->NoteAsked({.number = 0, .point = {1, 0.5}}));
  EXPECT_EQ(store->Load().error().text(),
            "trials.log: trial 0: m has a value, which its condition forbids");
}

TEST_F(Store, DirectoriesOfTrialsHaveSafeNames) {
  auto store = SweepStore::Create(Plan(), "");
  EXPECT_EQ(io::BaseName(store->TrialDir({.number = 7, .point = {0.01, 0}})), "007-lr=0.01,o=a_b");
}

}  // namespace
}  // namespace cli
