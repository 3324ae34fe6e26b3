#include "cli/trial_metric.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "events/event_writer.h"
#include "io/files.h"

namespace cli {
namespace {

using Reports = std::vector<double>;

Reports Read(const std::string& metric, const std::string& log) {
  TrialMetric trial(metric);
  trial.Use({});
  trial.FeedLog(log);
  return trial.Take();
}

TEST(TrialMetric, IsReadFromKerasLinesOnceAnEpoch) {
  const std::string log =
      "Epoch 1/2\n"
      "  5/10 [=====>......] - ETA: 0s - loss: 0.9\r"
      "10/10 [============] - 1s 9ms/step - loss: 0.8 - val_loss: 0.7\n"
      "Epoch 2/2\n"
      "10/10 [============] - 1s 9ms/step - loss: 0.6 - val_loss: 0.5\n";
  EXPECT_EQ(Read("loss", log), (Reports{0.8, 0.6}));
  EXPECT_EQ(Read("val_loss", log), (Reports{0.7, 0.5}));
  EXPECT_EQ(Read("oss", log), Reports{});
}

TEST(TrialMetric, IsTheSameInWhateverPiecesTheLogComes) {
  const std::string log = "step 1 loss=0.5\nstep 2 loss=0.25\n";
  TrialMetric trial("loss");
  trial.Use({});
  Reports all;
  for (char c : log) {
    trial.FeedLog(std::string(1, c));
    for (double value : trial.Take()) all.push_back(value);
  }
  EXPECT_EQ(all, Read("loss", log));
  EXPECT_EQ(all, (Reports{0.5, 0.25}));
}

TEST(TrialMetric, IsReadFromAnyLineThatNamesIt) {
  EXPECT_EQ(Read("score", "the score = 0.5, done\nfinal_score: 3\nscore: -1e-3\nscores 4\n"),
            (Reports{0.5, -1e-3}));
}

TEST(TrialMetric, AStepIsReportedOnce) {
  // A worker that was restarted says it all again.
  EXPECT_EQ(
      Read("loss", "step 1 loss=3\nstep 2 loss=2\nstep 1 loss=3\nstep 2 loss=2\nstep 3 loss=1\n"),
      (Reports{3, 2, 1}));
}

TEST(TrialMetric, NamesWhatItHasSeen) {
  TrialMetric trial("val_loss");
  trial.FeedLog("step 1 loss=3, accuracy=0.5\n");
  EXPECT_EQ(trial.names(), (std::set<std::string>{"accuracy", "loss"}));
  EXPECT_FALSE(trial.last());
}

TEST(TrialMetric, TellsAnArgumentThatIsNotTaken) {
  TrialMetric trial("loss");
  trial.FeedLog("usage: a.py [-h]\na.py: error: unrecognized arguments: --lr=0.1\n");
  EXPECT_EQ(trial.refusal(), "a.py: error: unrecognized arguments: --lr=0.1");
}

class EventFiles : public testing::Test {
 protected:
  void Write(const std::string& run, const std::string& tag, const std::vector<float>& values) {
    std::filesystem::create_directories(root_ + "/" + run);
    std::string file = events::Record(events::FileVersion());
    for (size_t i = 0; i < values.size(); ++i) {
      file += events::Record(
          events::EventOf(static_cast<int64_t>(i + 1), 1.7e9, events::ScalarTf2(tag, values[i])));
    }
    ASSERT_TRUE(io::WriteFile(root_ + "/" + run + "/events.out.tfevents.1", file));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  const std::string root_ = testing::TempDir() + "trial-metric-" + std::to_string(getpid()) + "-" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(EventFiles, AreReadWhereTheLogHasNoSuchName) {
  Write("eval", "loss", {3, 2, 1});
  events::LogDirReader reader(root_);
  reader.Poll(base::Time(std::chrono::seconds(1)));
  TrialMetric trial("loss");
  trial.ReadEvents(0, reader);
  ASSERT_EQ(trial.Found(), (MetricSource{0, "eval/loss"}));
  EXPECT_EQ(trial.Take(), Reports{});
  trial.Use(*trial.Found());
  EXPECT_EQ(trial.Take(), (Reports{3, 2, 1}));
  trial.ReadEvents(0, reader);
  EXPECT_EQ(trial.Take(), Reports{});
  EXPECT_EQ(trial.last(), 1);
  TrialMetric printed("loss");
  printed.FeedLog("step 1 loss=9\n");
  printed.ReadEvents(0, reader);
  printed.Use(*printed.Found());
  EXPECT_EQ(printed.Take(), Reports{9});
}

TEST_F(EventFiles, AndALogGiveTheSameSeriesWhicheverIsReadFirst) {
  Write("eval", "loss", {3, 2, 1});
  events::LogDirReader reader(root_);
  reader.Poll(base::Time(std::chrono::seconds(1)));
  for (const MetricSource& source : {MetricSource{}, MetricSource{0, "eval/loss"}}) {
    TrialMetric live("loss"), again("loss");
    for (TrialMetric* trial : {&live, &again}) trial->Use(source);
    Reports seen;
    const auto take = [&] {
      for (double value : live.Take()) seen.push_back(value);
    };
    live.ReadEvents(0, reader);
    take();
    live.FeedLog("step 1 loss=9\n");
    take();
    live.ReadEvents(0, reader);
    live.FeedLog("step 2 loss=8\n");
    take();
    again.FeedLog("step 1 loss=9\nstep 2 loss=8\n");
    again.ReadEvents(0, reader);
    EXPECT_EQ(seen, again.Take());
    EXPECT_EQ(live.last(), again.last());
    EXPECT_EQ(live.Found(), MetricSource{});
  }
}

TEST_F(EventFiles, OfTwoDirectoriesTheFirstThatHasItCounts) {
  Write("logs/eval", "loss", {3, 2});
  Write("output/eval", "loss", {7, 6, 5});
  events::LogDirReader logs(root_ + "/logs"), output(root_ + "/output");
  TrialMetric trial("loss");
  // Whichever is written first.
  output.Poll(base::Time(std::chrono::seconds(1)));
  trial.ReadEvents(1, output);
  logs.Poll(base::Time(std::chrono::seconds(1)));
  trial.ReadEvents(0, logs);
  trial.Use(*trial.Found());
  EXPECT_EQ(trial.Take(), (Reports{3, 2}));
}

TEST_F(EventFiles, ATagOfTwoRunsIsNotGuessed) {
  Write("train", "epoch_loss", {3});
  Write("validation", "epoch_loss", {4});
  events::LogDirReader reader(root_);
  reader.Poll(base::Time(std::chrono::seconds(1)));
  TrialMetric vague("epoch_loss"), exact("validation/epoch_loss");
  vague.ReadEvents(0, reader);
  exact.ReadEvents(0, reader);
  EXPECT_FALSE(vague.Found());
  EXPECT_EQ(vague.meanings(), (std::set<std::string>{"train/epoch_loss", "validation/epoch_loss"}));
  exact.Use(*exact.Found());
  EXPECT_EQ(exact.Take(), Reports{4});
}

TEST(MetricSource, IsTheSameAfterItWasWrittenDown) {
  for (const MetricSource& source : {MetricSource{}, MetricSource{1, "a b/epoch loss"}}) {
    EXPECT_EQ(MetricSourceFrom(Text(source)), source);
  }
  for (const char* text : {"", "logs", "events", "events 0", "events -1 x", "events x y"}) {
    EXPECT_EQ(MetricSourceFrom(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace cli
