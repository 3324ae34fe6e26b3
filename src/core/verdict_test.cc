#include "core/verdict.h"

#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

using Lines = std::vector<std::string>;

const Lines kTraceback = {"Epoch 1/3", "Traceback (most recent call last):",
                          "  File \"/home/a/train.py\", line 9, in <module>", "    main()",
                          "ValueError: Shapes (2,) and (3,) are incompatible"};

TEST(TellingLine, IsTheExceptionOfTheLastTraceback) {
  EXPECT_EQ(TellingLine(kTraceback), "ValueError: Shapes (2,) and (3,) are incompatible");
}

TEST(TellingLine, IsTheLastOfSeveralTracebacks) {
  Lines lines = kTraceback;
  lines.insert(lines.end(), {"During handling of the above exception, another exception occurred:",
                             "Traceback (most recent call last):", "  File \"x.py\", line 1, in f",
                             "keras.src.errors.StopError: told to", "second line of the message"});
  EXPECT_EQ(TellingLine(lines), "keras.src.errors.StopError: told to");
}

TEST(TellingLine, IsElseTheLastThatReadsLikeAnError) {
  EXPECT_EQ(TellingLine({"a", "  F tensorflow/core/x.cc:7] Check failed: n > 0  ", "Epoch 3/3"}),
            "F tensorflow/core/x.cc:7] Check failed: n > 0");
}

TEST(TellingLine, IsElseTheLastThatSaysAnything) {
  EXPECT_EQ(TellingLine({"one", "two", "  ", ""}), "two");
  EXPECT_EQ(TellingLine({}), "");
}

TEST(BlamesAPeer, KnowsTheWordsOfTensorFlow) {
  EXPECT_TRUE(
      BlamesAPeer("tensorflow.python.framework.errors_impl.UnavailableError: Socket closed"));
  EXPECT_TRUE(BlamesAPeer("Task /job:worker/replica:0/task:1 heartbeat timeout"));
  EXPECT_FALSE(BlamesAPeer("ValueError: bad"));
  EXPECT_FALSE(BlamesAPeer(""));
}

TEST(WhatHappened, TellsHowItEnded) {
  EXPECT_EQ(WhatHappened({.code = 3}), "exited with status 3");
  EXPECT_EQ(WhatHappened({.code = 137, .signal = 9}), "was killed by SIGKILL from outside");
  EXPECT_EQ(WhatHappened({.code = 137, .signal = 9, .stopped = true}), "was killed by SIGKILL");
  EXPECT_EQ(WhatHappened({.code = 139, .signal = 11}), "was killed by SIGSEGV");
  EXPECT_EQ(WhatHappened({.code = 137, .disruption = "preempted"}), "was taken away: preempted");
  EXPECT_EQ(WhatHappened({.code = 127, .start_error = "python3: no such file"}),
            "could not be started: python3: no such file");
  EXPECT_EQ(WhatHappened({.code = 137,
                          .signal = 9,
                          .memory_limit_by = "cgroup v1",
                          .memory_limit = 512 << 20,
                          .memory_peak = 511 << 20}),
            "ran out of memory (killed at its limit of 512Mi, peak 511Mi, by cgroup v1)");
}

TEST(Verdict, OnAClusterTheAdviceIsForAnImage) {
  const Ending ending = {.code = 1, .last_lines = {"No module named 'pandas'"}};
  for (const char* flag : {"--python", "-p"}) {
    World here(MakeJob({.worker = 1})), there(MakeJob({.worker = 1}));
    there.policy.in_pods = true;
    const char* line = flag[1] == 'p' ? "Address already in use" : "No module named 'pandas'";
    for (World* world : {&here, &there}) {
      world->job.spec.replicas.at(Role::kWorker).restart_policy = RestartPolicy::kNever;
      world->Settle().End(kWorker0, 1, line).Settle();
    }
    EXPECT_TRUE(here.job.status.verdict->advice.contains(flag));
    EXPECT_FALSE(there.job.status.verdict->advice.contains(flag));
  }
  EXPECT_TRUE(Advice(MakeJob({.worker = 1}), kWorker0, ending, true).contains("trainyard package"));
}

TEST(Verdict, TellsTheTracebacksLastLine) {
  EXPECT_EQ(FailedBecause(MakeJob({.worker = 2}), kWorker1, {.code = 1, .last_lines = kTraceback}),
            (api::Verdict{"failed",
                          "worker/1 exited with status 1: ValueError: Shapes (2,) and (3,) are "
                          "incompatible",
                          "trainyard logs mnist -i worker/1", 1}));
}

TEST(Verdict, OfAKillDoesNotQuoteTheLog) {
  EXPECT_EQ(FailedBecause(MakeJob({.worker = 2}), kWorker1,
                          {.code = 137, .signal = 9, .last_lines = {"Epoch 1/3"}}),
            (api::Verdict{"failed", "worker/1 was killed by SIGKILL from outside",
                          "trainyard logs mnist -i worker/1", 137}));
}

TEST(Verdict, OfLostMemorySaysHowMuchToGive) {
  const Ending oom{
      .code = 137, .signal = 9, .memory_limit_by = "polling", .memory_limit = 512 << 20};
  EXPECT_EQ(FailedBecause(MakeJob({.worker = 2}), kWorker0, oom).advice,
            "trainyard resume mnist --worker-memory 768Mi");
  EXPECT_EQ(FailedBecause(MakeJob({.ps = 1, .worker = 2}), kPs0, oom).advice,
            "raise resources.limits.memory of the PS to 768Mi");
}

TEST(Verdict, KnowsTheCureForKeras3UnderMultiWorkerMirrored) {
  const Ending ending{
      .code = 1,
      .last_lines = {"ValueError: Attempt to convert a value (PerReplica:{...}) with an "
                     "unsupported type"}};
  EXPECT_TRUE(FailedBecause(MakeJob({.worker = 2}), kWorker0, ending)
                  .advice.starts_with("Keras 3's fit() does not work under"));
}

TEST(Verdict, ExitStatusIsNeverZeroForAFailure) {
  EXPECT_EQ(FailedBecause(MakeJob({.worker = 1}), kWorker0, {.code = 0}).exit_status, 1);
}

TEST(Verdict, OfTheLimitNamesTheLastCause) {
  World world(MakeJob({.worker = 2}));
  world.job.spec.run_policy.backoff_limit = 0;
  world.Settle().End(kWorker1, 137).Settle();
  EXPECT_EQ(world.job.status.verdict->cause,
            "worker/1 was killed by SIGKILL from outside, and backoffLimit allows no restart");
}

TEST(Verdict, OfSuccessTellsOfTheRestartsOnTheWay) {
  World world(MakeJob({.worker = 2}));
  world.Settle().After(1s).End(kWorker1, 137).Settle().End(kWorker0, 0).Settle();
  EXPECT_EQ(world.job.status.verdict,
            (api::Verdict{"succeeded",
                          "started again once on the way; the last time worker/1 was killed by "
                          "SIGKILL from outside",
                          "", 0}));
}

TEST(Verdict, OfAPlainSuccessNeedsNoWords) {
  World world(MakeJob({.worker = 1}));
  world.Settle().End(kWorker0, 0).Settle();
  EXPECT_EQ(world.job.status.verdict, (api::Verdict{.result = "succeeded"}));
}

}  // namespace
}  // namespace core
